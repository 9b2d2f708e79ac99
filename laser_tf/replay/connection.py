"""Connection of a client to a replay server, which may be restarted or moved."""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import reverb

from laser_tf import errors
from laser_tf.replay import stored_unroll, tables
from laser_tf.replay.schemes import base

TIMEOUT_SECONDS = 20
POLL_TIMEOUT_SECONDS = 3
NO_PROXY_VARIABLE = "no_grpc_proxy"  # gRPC reads the lower-case name only.
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_POLL_PERIOD_SECONDS = 2.0
_WAIT_PERIOD_SECONDS = 0.1  # between polls while a caller waits for the server


def bypass_proxy(*hosts: str) -> None:
    """Makes gRPC channels that are opened from now on reach this machine and hosts directly.

    Reverb passes no options to its channels. gRPC ignores `no_proxy` if `no_grpc_proxy` is set, so
    the new value includes the entries of `no_proxy`.
    """
    present = os.environ.get(NO_PROXY_VARIABLE) or os.environ.get("no_proxy", "")
    entries = [entry.strip() for entry in present.split(",") if entry.strip()]
    os.environ[NO_PROXY_VARIABLE] = ",".join(dict.fromkeys([*entries, *_LOOPBACK, *hosts]))
    # An empty value turns off web proxies, because gRPC reads `http_proxy` otherwise.
    os.environ.setdefault("grpc_proxy", "")


bypass_proxy()


class ReplayConnection:
    """Connection to a replay server: polls its tables, detects restarts and updates priorities.

    `address` is the "host:port" of the server's last known location, `client` its Reverb client,
    and `queue` the name of the learner's queue.
    """

    def __init__(
        self, address: str | Callable[[], str], scheme: base.ReplayScheme, queue: str = base.QUEUE
    ):
        """Sends no request; calls a function as `address` while the server is unreachable."""
        self.scheme = scheme
        self._find: Callable[[], str] = address if callable(address) else lambda: address
        self._connect(self._find())
        self.queue = queue
        self._expected: dict[str, Any] = {}  # Table -> signature.
        self._accepted: dict[str, Any] = {}  # Queue or table name -> encoded signature.
        self._liveness = tables.Liveness()
        self._sizes: dict[str, int] = {}  # Items of each table at the last poll.
        self.rejection: ValueError | None = None  # raised by later polls
        self._polling = threading.RLock()
        self._stopped = threading.Event()
        self._poller: threading.Thread | None = None
        self._updating: tuple[reverb.Client, threading.Thread] | None = None

    def _connect(self, address: str) -> None:
        self.address = address
        # A run reaches its own server directly; `replay.address` may need the user's proxy.
        if address != self.scheme.address:
            bypass_proxy(address.rpartition(":")[0].strip("[]"))
        self.client = reverb.Client(address)

    @property
    def server(self) -> tuple[str, int]:
        """Address, and number of times that another server replaced the last one."""
        return self.address, self._liveness.restarts

    @property
    def is_answering(self) -> bool:
        """True if the server answered the last poll."""
        return self._liveness.is_answering

    def check(self, signature: stored_unroll.StoredUnroll) -> None:
        """Checks that the server's tables fit unrolls of a signature, now and at later polls.

        Raises ConfigError for the first difference, RuntimeError if the server does not answer.
        """
        infos = tables.read(self.client, TIMEOUT_SECONDS)
        self._expected = self.scheme.signatures(signature)
        with self._polling:
            self._accept(infos)

    def start_polling(self) -> None:
        """Starts a thread that polls the server every few seconds until `stop`."""
        self._poller = threading.Thread(target=self._keep_polling, name="replay poll", daemon=True)
        self._poller.start()

    def _keep_polling(self) -> None:
        while not self._stopped.is_set():
            try:
                self.poll()
            except ValueError:
                return  # Raised again in the threads that use the server.
            self._stopped.wait(_POLL_PERIOD_SECONDS)

    def wait(self, should_stop: Callable[[], bool]) -> bool:
        """Blocks until `poll` succeeds; returns False if `should_stop` returned True."""
        while not should_stop():
            if self.poll():
                return True
            time.sleep(_WAIT_PERIOD_SECONDS)
        return False

    def poll(self) -> bool:
        """Requests the tables of the server; returns whether the server answers.

        Raises ConfigError if the server is rejected, e.g. because its tables are incompatible.
        """
        with self._polling:
            self.raise_if_rejected()
            try:
                infos = tables.read(self.client, POLL_TIMEOUT_SECONDS)
            except RuntimeError:
                self._liveness.record_silence(self.address)
                address = self._find()
                if address != self.address:
                    self._connect(address)
                    self._liveness.record_move()
                return False
            try:
                self._accept(infos)
            except ValueError as error:
                self.rejection = error
                raise
            return True

    def raise_if_rejected(self) -> None:
        """Raises the error that the server was rejected with, if any."""
        if self.rejection is not None:
            raise self.rejection

    def _accept(self, infos: Mapping[str, tables.TableInfo]) -> None:
        for table in self._expected or (base.QUEUE,):
            self._check_table(table, infos)
        self._sizes = {name: info.current_size for name, info in infos.items()}
        if self._liveness.record_answer(infos, self.address):
            logging.warning(
                "Replay server at %s was restarted: it holds %d items",
                self.address, self._sizes.get(self.scheme.replay_table or self.queue, 0),
            )  # fmt: skip

    def _check_table(self, table: str, infos: Mapping[str, tables.TableInfo]) -> None:
        name = self.queue if table == base.QUEUE else table
        if name not in infos:
            raise errors.ConfigError(
                f"the replay server at {self.address} must have a table {name!r}, got only "
                f"{', '.join(map(repr, sorted(infos)))}. Start the server with the replay "
                "configuration of this run."
            )
        info, expected = infos[name], self._expected.get(table)
        if expected is None:
            return
        if table == self.scheme.replay_table:
            self._check_exponent(info)
            self.scheme.check_server(info.max_size)
        # Decoding a signature leaks memory, so a signature that was accepted is not decoded again.
        if info.signature == self._accepted.get(name):
            return
        if difference := tables.difference(info, expected):
            raise errors.ConfigError(
                f"the replay server at {self.address} must accept the run's unrolls, got other "
                f"tables: {difference}. Use the same environment, core and unroll length."
            )
        self._accepted[name] = info.signature

    def _check_exponent(self, info: tables.TableInfo) -> None:
        server = info.sampler_options.prioritized.priority_exponent  # 0 for a uniform table
        run = self.scheme.sampler_exponent
        if server != run:
            raise errors.ConfigError(
                f"replay.priority_exponent must be {server:g} as on the replay server at "
                f"{self.address}, got {run:g}. Use --config.replay.priority_exponent={server:g}, "
                "or start the server with the replay configuration of this run."
            )

    def size(self) -> int:
        """Returns the items in replay, of `new_steps_per_item` agent steps each; 0 without a table.

        The number is that of the last poll. Polls unless `start_polling` was called.
        """
        if not self.scheme.replay_table:
            return 0
        if self._poller is None:
            self.poll()
        return self._sizes.get(self.scheme.replay_table, 0)

    def num_held(self) -> int:
        """Returns the items in replay and in the learner's queue at the last poll."""
        names = {self.queue, self.scheme.replay_table or self.queue}
        return sum(self._sizes.get(name, 0) for name in names)

    def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
        """Updates the priorities of items; ignores items that were removed. Blocks up to 3 s.

        Skips the update while the server does not answer or the previous update is in progress.
        Skips invalid priorities, because Reverb could not load a checkpoint that has them.
        """
        client, thread = self._updating or (None, None)
        is_busy = client is self.client and thread.is_alive()
        if is_busy or not self.is_answering:
            return
        usable = np.isfinite(priorities) & (priorities >= 0)
        updates = dict(zip(keys[usable].tolist(), priorities[usable].tolist(), strict=True))
        # In a thread, because Reverb blocks forever if the server is gone.
        thread = threading.Thread(target=self._update, args=(self.client, updates), daemon=True)
        self._updating = self.client, thread
        thread.start()
        thread.join(POLL_TIMEOUT_SECONDS)

    def _update(self, client: reverb.Client, updates: dict[int, float]) -> None:
        with contextlib.suppress(RuntimeError):  # The server has just become unreachable.
            client.mutate_priorities(self.scheme.replay_table, updates)

    def stop(self) -> None:
        """Stops polling; the server keeps running."""
        self._stopped.set()

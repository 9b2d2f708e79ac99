"""Connection of a client to a replay server, which may be restarted or moved."""

import logging
import threading
import time
from collections.abc import Callable, Mapping

import numpy as np
import reverb

from laser_tf.replay import (
    compatibility,
    liveness,
    proxies,
    stored_unroll,
    table_info,
)
from laser_tf.replay.schemes import base

TIMEOUT_SECONDS = 20
POLL_TIMEOUT_SECONDS = 3
_POLL_PERIOD_SECONDS = 2.0
_WAIT_PERIOD_SECONDS = 0.1  # between polls while a caller waits for the server

proxies.bypass()


class ReplayConnection:
    """Requests to a replay server, except writing and sampling.

    Attributes:
      address: "host:port" of the server's last known location.
      client: Reverb client of that server.
      queue: Name of the learner's queue.
      max_size: Capacity in items of the replay table at the last poll; 0 without a replay table.
      num_skipped_updates: Number of priorities that could not be updated.
    """

    def __init__(
        self,
        address: str | Callable[[], str],
        scheme: base.ReplayScheme,
        queue: str = base.QUEUE,
    ):
        """Sends nothing.

        Args:
          address: "host:port" of the Reverb server, or a function that returns the address. The
            function is called again while the server does not answer.
          scheme: Replay scheme.
          queue: Name of the learner's queue.
        """
        self._scheme = scheme
        self._find: Callable[[], str] = address if callable(address) else lambda: address
        self.address = self._find()
        self._bypass_proxy()
        self.queue = queue
        self.client = reverb.Client(self.address)
        self.max_size = 0
        self.num_skipped_updates = 0
        self._compatibility = compatibility.Compatibility(scheme, queue)
        self._liveness = liveness.Liveness()
        self._sizes: dict[str, int] = {}  # items of each table at the last poll
        self._rejection: ValueError | None = None
        self._polling = threading.RLock()
        self._stopped = threading.Event()
        self._poller: threading.Thread | None = None
        self._updating: tuple[reverb.Client, threading.Thread] | None = None

    @property
    def restarts(self) -> int:
        """Returns how often another server was found in place of the last one."""
        return self._liveness.restarts

    @property
    def is_answering(self) -> bool:
        """Returns whether the server answered the last poll."""
        return self._liveness.is_answering

    def check(self, signature: stored_unroll.StoredUnroll) -> None:
        """Checks that the server's tables are compatible. Later polls check them again.

        Args:
          signature: Signature of an unroll.

        Raises:
          ConfigError: For the first difference.
          RuntimeError: If the server does not answer in time.
        """
        info = table_info.read(self.client, TIMEOUT_SECONDS)
        self._compatibility.require(signature)
        with self._polling:
            self._accept(info)

    def start_polling(self) -> None:
        """Starts a thread that polls the server every few seconds until `stop`."""
        self._poller = threading.Thread(target=self._keep_polling, name="replay poll", daemon=True)
        self._poller.start()

    def _keep_polling(self) -> None:
        while not self._stopped.is_set() and self._rejection is None:
            try:
                self.poll()
            except ValueError:
                return  # Raised again in the threads that use the server.
            self._stopped.wait(_POLL_PERIOD_SECONDS)

    def wait(self, should_stop: Callable[[], bool]) -> bool:
        """Blocks until the server answers; returns False if `should_stop` returned True.

        Raises:
          ValueError: If the server is rejected.
        """
        while not should_stop():
            if self.poll():
                return True
            time.sleep(_WAIT_PERIOD_SECONDS)
        return False

    def poll(self) -> bool:
        """Asks the server for its tables; returns whether the server answers.

        Raises:
          ValueError: If the server is rejected, e.g. because its tables are incompatible.
        """
        with self._polling:
            self.raise_if_rejected()
            try:
                info = table_info.read(self.client, POLL_TIMEOUT_SECONDS)
            except (reverb.ReverbError, RuntimeError):
                self._liveness.record_silence(self.address, POLL_TIMEOUT_SECONDS)
                self._follow()
                return False
            try:
                self._accept(info)
            except ValueError as error:
                self.reject(error)
                raise
            return True

    def raise_if_rejected(self) -> None:
        """Raises the error that the server was rejected with, if any."""
        if self._rejection is not None:
            raise self._rejection

    def reject(self, error: ValueError) -> None:
        """Rejects the server: later polls raise the error."""
        self._rejection = error

    def _follow(self) -> None:
        """Connects to the server's new address, if any."""
        address = self._find()
        if address != self.address:
            self.address = address
            self._bypass_proxy()
            self.client = reverb.Client(address)
            self._liveness.record_move()

    def _bypass_proxy(self) -> None:
        """Reaches a run's own server directly; `replay.address` may need the user's proxy."""
        if self.address != self._scheme.address:
            proxies.bypass([*proxies.LOOPBACK, proxies.host_of(self.address)])

    def _accept(self, info: Mapping[str, table_info.TableInfo]) -> None:
        self._compatibility.check(info, self.address)
        before, self._sizes = self._sizes, {name: t.current_size for name, t in info.items()}
        if replayed := info.get(self._scheme.replay_table):
            self.max_size = replayed.max_size
        if self._liveness.record_answer(info, self.address):
            table = self._scheme.replay_table or self.queue
            logging.warning(
                "Replay server at %s was restarted: it holds %d of %d items",
                self.address, self._sizes[table], before.get(table, 0),
            )  # fmt: skip

    def size(self) -> int:
        """Returns the items in replay, of `steps_per_item` agent steps each.

        The number is 0 without a replay table, and the last known one while the server is silent.
        """
        table = self._scheme.replay_table
        if not table:
            return 0
        if self._poller is None:
            self.poll()
        return self._sizes.get(table, 0)

    def num_held(self) -> int:
        """Returns the items in replay and in the learner's queue at the last poll."""
        names = {self.queue, self._scheme.replay_table or self.queue}
        return sum(self._sizes.get(name, 0) for name in names)

    def fill(self) -> float:
        """Returns the agent steps in replay divided by its capacity, in [0, 1]."""
        return self._scheme.fill(self.size())

    def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
        """Updates the priorities of items; ignores items that were removed.

        Skips all updates while the server does not answer. Skips invalid priorities, because
        Reverb would store them and then fail to load its checkpoint.

        Args:
          keys: uint64 [B], keys of the items.
          priorities: float [B], at least 0. NaN or infinite after a failed update.
        """
        usable = np.isfinite(priorities) & (priorities >= 0)
        self.num_skipped_updates += int(np.sum(~usable))
        keys, priorities = keys[usable], priorities[usable]
        if self._poller is None:
            self._update(self.client, keys, priorities)
            return
        if not self.is_answering or self._is_updating():
            self.num_skipped_updates += len(keys)
            return
        # In a thread, because Reverb blocks forever if the server is gone.
        update = threading.Thread(
            target=self._update, args=(self.client, keys, priorities), daemon=True
        )
        self._updating = self.client, update
        update.start()
        update.join(POLL_TIMEOUT_SECONDS)

    def _is_updating(self) -> bool:
        client, thread = self._updating or (None, None)
        return client is self.client and thread.is_alive()

    def _update(self, client: reverb.Client, keys: np.ndarray, priorities: np.ndarray) -> None:
        updates = dict(zip(keys.tolist(), priorities.tolist(), strict=True))
        try:
            client.mutate_priorities(self._scheme.replay_table, updates)
        except RuntimeError:  # The server has just gone.
            self.num_skipped_updates += len(keys)

    def stop(self) -> None:
        """Stops polling; the server keeps running."""
        self._stopped.set()

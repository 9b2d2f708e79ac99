"""A client's side of a replay server in this process or another one, which may be restarted."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import reverb

from laser_tf import errors
from laser_tf.replay import proxies, replay_config, stored_unroll, table_info, tables

TIMEOUT_SECONDS = 20
_LOOK_SECONDS = 3  # that a server has to answer in
_PERIOD_SECONDS = 2.0  # from one look at the server to the next
_SILENT_SECONDS = 5.0  # without an answer, after which that is told
_BETWEEN_LOOKS = 0.1  # seconds, of whoever waits for the server
_LATE_SECONDS = 4.0  # by which a server's age may be behind its own of the last look

proxies.bypass()


class Connection:
    """What a process asks of replay beside writing and sampling.

    A server that is killed and comes back is noticed: by Reverb's clients alone it is not, they
    go on with an empty server without an error.

    Attributes:
      address: "host:port", where the server was last.
      client: of the server there.
      restarts: how often another server was found in its place.
      is_answering: whether it answered the last look.
      most_items: that its replay table may hold, as of the last look; 0 without one.
      passed_over: priorities that could not be updated.
    """

    def __init__(
        self,
        address: str | Callable[[], str],
        config: replay_config.ReplayConfig,
        queue: str = replay_config.ONLINE,
    ):
        """Connects; nothing is sent yet.

        Args:
          address: "host:port" of the Reverb server, or what returns it: asked anew while the
            server does not answer.
          config: of its tables.
          queue: this learner's.
        """
        self._config = config
        self._find: Callable[[], str] = address if callable(address) else lambda: address
        self.address = self._find()
        self._bypass_proxy()
        self.queue = queue
        self.client = reverb.Client(self.address)
        self._expected: dict[str, Any] = {}  # signatures, by table
        self._accepted: dict[str, Any] = {}  # the same, as the server encodes them
        self.restarts = 0
        self.is_answering = True
        self.most_items = 0
        self.passed_over = 0
        self._looking = threading.RLock()
        self._has_moved = False
        self._refusal: ValueError | None = None
        self._sizes: dict[str, int] = {}  # of the tables, at the last look
        self._drawable = 0
        self._seen: tuple[float, float, int] | None = None  # when, the server's age, its inserts
        self._silent_since: float | None = None
        self._is_silence_told = False
        self._stopped = threading.Event()
        self._watch: threading.Thread | None = None
        self._updating: tuple[reverb.Client, threading.Thread] | None = None

    @property
    def servers(self) -> tuple["Connection", ...]:
        """All servers that are drawn from: this one."""
        return (self,)

    def check(self, signature: stored_unroll.StoredUnroll) -> None:
        """Raises ValueError unless the server takes such unrolls and draws them as configured.

        The message names the first difference.
        A server that takes its place later is held against them, too. This is the first look at it.
        """
        info = table_info.read(self.client, TIMEOUT_SECONDS)
        self._expected = tables.signatures_of(self._config, signature)
        with self._looking:
            self._note_answer(info)

    def _compare_tables(self, info: Mapping[str, table_info.TableInfo]) -> None:
        if self.queue not in info:
            raise errors.ConfigError(
                f"the replay server at {self.address} has no table {self.queue!r}, only "
                f"{', '.join(map(repr, sorted(info)))}: it serves another sweep"
            )
        for table, expected in self._expected.items():
            name = self.queue if table == replay_config.ONLINE else table
            if name not in info:
                raise errors.ConfigError(
                    f"the replay server at {self.address} has no table {name!r}, only "
                    f"{', '.join(map(repr, sorted(info)))}: start it with this run's replay"
                )
            if table == self._config.replay_table:
                self._compare_draws(info[table])
            if info[name].signature == self._accepted.get(name):
                continue
            if found := tables.difference(table_info.signature(info[name]), expected):
                raise errors.ConfigError(
                    f"the replay server at {self.address} takes other unrolls: {found}; agents on "
                    "one replay need the same environment, core and unrolls"
                )
            self._accepted[name] = info[name].signature

    def _compare_draws(self, there: table_info.TableInfo) -> None:
        """Raises ValueError if the server raises priorities to another exponent than this run."""
        theirs = there.sampler_options.prioritized.priority_exponent  # 0 of a uniform table
        ours = tables.exponent_of(self._config)
        if theirs != ours:
            raise errors.ConfigError(
                f"the replay server at {self.address} draws by a priority_exponent of {theirs:g}, "
                f"not {ours:g}: start it with this run's replay, or use "
                f"--config.replay.priority_exponent={theirs:g}"
            )

    def watch(self) -> None:
        """Looks at the server every few seconds from now on, until `stop`."""
        self._watch = threading.Thread(target=self._keep_looking, name="replay watch", daemon=True)
        self._watch.start()

    def _keep_looking(self) -> None:
        while not self._stopped.is_set() and self._refusal is None:
            try:
                self.look()
            except ValueError:
                return  # kept for whoever waits for the server
            self._stopped.wait(_PERIOD_SECONDS)

    def wait(self, should_stop: Callable[[], bool]) -> bool:
        """Blocks until the server answers; returns False once `should_stop` says so.

        Raises:
          ValueError: if another server has taken its place, which takes other unrolls.
        """
        while not should_stop():
            if self.look():
                return True
            time.sleep(_BETWEEN_LOOKS)
        return False

    def look(self) -> bool:
        """Whether the server answers, wherever it is by now; notes whether it is the same one.

        Raises:
          ValueError: if another server has taken its place, which takes other unrolls.
        """
        with self._looking:
            self.raise_refusal()
            try:
                info = table_info.read(self.client, _LOOK_SECONDS)
            except (reverb.ReverbError, RuntimeError):
                self._note_silence()
                self._follow()
                return False
            try:
                self._note_answer(info)
            except ValueError as error:
                self._refusal = error
                raise
            return True

    def raise_refusal(self) -> None:
        """Raises the ValueError of a look that found a server which takes other unrolls."""
        if self._refusal is not None:
            raise self._refusal

    def refuse(self, error: ValueError) -> None:
        """Has whoever waits for the server, from now on, get an error instead."""
        self._refusal = error

    def _follow(self) -> None:
        """Goes where the server is now."""
        address = self._find()
        if address != self.address:
            self.address = address
            self._bypass_proxy()
            self.client = reverb.Client(address)
            self._has_moved = True

    def _bypass_proxy(self) -> None:
        """Reaches a run's own server directly; `replay.addresses` may need the user's proxy."""
        if self.address not in self._config.servers:
            proxies.bypass([*proxies.LOOPBACK, proxies.host_of(self.address)])

    def _note_silence(self) -> None:
        now = time.time()
        self.is_answering = False
        if self._silent_since is None:
            self._silent_since, self._is_silence_told = now - _LOOK_SECONDS, False
        if now - self._silent_since >= _SILENT_SECONDS and not self._is_silence_told:
            self._is_silence_told = True
            logging.warning(
                "the replay server at %s does not answer since %s: waiting for it",
                self.address, time.strftime("%H:%M:%S", time.localtime(self._silent_since)),
            )  # fmt: skip

    def _note_answer(self, info: Mapping[str, table_info.TableInfo]) -> None:
        is_other = self._is_other(info)
        self._compare_tables(info)
        held, sizes = self._sizes, {name: table.current_size for name, table in info.items()}
        self._sizes = sizes
        if replayed := info.get(self._config.replay_table):
            is_episodes = self._config.replay_table == replay_config.EPISODES
            self._drawable = replayed.num_episodes if is_episodes else replayed.current_size
            self.most_items = replayed.max_size
        if is_other:
            self.restarts += 1
            table = self._config.replay_table or self.queue
            logging.warning(
                "the replay server was restarted, at %s: it holds %d of %d items",
                self.address, sizes[table], held.get(table, 0),
            )  # fmt: skip
        elif self._is_silence_told:
            seconds = time.time() - self._silent_since
            logging.info("the replay server at %s answers after %.0f s", self.address, seconds)
        self._silent_since, self._is_silence_told = None, False
        self.is_answering = True

    def _is_other(self, info: Mapping[str, table_info.TableInfo]) -> bool:
        """Whether another server answers than at the last look."""
        now, age = time.monotonic(), _age(info)
        inserts = sum(table.rate_limiter_info.insert_stats.completed for table in info.values())
        before, self._seen = self._seen, (now, age, inserts)
        has_moved, self._has_moved = self._has_moved, False
        if before is None:
            return False
        seen, age_before, inserts_before = before
        expected = age_before + now - seen
        is_younger = age < max(age_before, expected - _LATE_SECONDS)
        return has_moved or is_younger or inserts < inserts_before

    @property
    def drawable(self) -> int:
        """What the server's share of replayed entries goes by, at the last look.

        Its unrolls or sequences; of a table of episodes the episodes; 0 while it does not answer.
        """
        return self._drawable if self.is_answering else 0

    def size(self) -> int:
        """Items in replay, of `steps_per_item` agent steps each; 0 without a replay table.

        While the server does not answer: what there were before.
        """
        table = self._config.replay_table
        if not table:
            return 0
        if self._watch is None:
            self.look()
        return self._sizes.get(table, 0)

    def held(self) -> int:
        """Items in replay and in this learner's queue, as of the last look."""
        names = {self.queue, self._config.replay_table or self.queue}
        return sum(self._sizes.get(name, 0) for name in names)

    def fill(self) -> float:
        """Agent steps in replay over its capacity, in [0, 1]."""
        return self.size() * self._config.steps_per_item / self._config.capacity

    def metrics(self) -> dict[str, float]:
        """None: see `learners_replay.LearnersReplay`."""
        return {}

    def loads(self) -> dict[str, float]:
        """How full the server's tables are, items over the most they hold, by metric's name."""
        info = table_info.read(self.client, TIMEOUT_SECONDS)
        return {
            f"replay/{table}_fill": about.current_size / about.max_size
            for table, about in info.items()
        }

    def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
        """Gives items of replay new priorities; those that are gone by now are passed over.

        So are all while the server does not answer, and those that are no priorities: Reverb keeps
        what it refuses, and could not load its checkpoint again.

        Args:
          keys: uint64 [B].
          priorities: float [B], at least 0; NaN or infinite where an update has failed.
        """
        usable = np.isfinite(priorities) & (priorities >= 0)
        self.passed_over += int(np.sum(~usable))
        keys, priorities = keys[usable], priorities[usable]
        if self._watch is None:
            self._update(self.client, keys, priorities)
            return
        if not self.is_answering or self._is_updating():
            self.passed_over += len(keys)
            return
        # Reverb would wait for a server that has gone without end.
        self._updating = (
            self.client,
            threading.Thread(
                target=self._update, args=(self.client, keys, priorities), daemon=True
            ),
        )
        self._updating[1].start()
        self._updating[1].join(_LOOK_SECONDS)

    def _is_updating(self) -> bool:
        client, thread = self._updating or (None, None)
        return client is self.client and thread.is_alive()

    def _update(self, client: reverb.Client, keys: np.ndarray, priorities: np.ndarray) -> None:
        updates = dict(zip(keys.tolist(), priorities.tolist(), strict=True))
        try:
            client.mutate_priorities(self._config.replay_table, updates)
        except RuntimeError:  # the server has just gone
            self.passed_over += len(keys)

    def take_priorities(self, batch: stored_unroll.Batch, priorities: np.ndarray) -> None:
        """Gives what a batch replayed the priorities that its loss returned.

        Args:
          batch: arrays.
          priorities: float [B], at least 0; of online entries none are used.
        """
        drawn = ~batch.is_online
        if drawn.any():
            self.update_priorities(batch.key[drawn], priorities[drawn])

    def checkpoint(self) -> None:
        """Does nothing: a shared server is saved by the process that runs it."""

    def stop(self) -> None:
        """Ends watching; a shared server outlives its learners."""
        self._stopped.set()


def _age(info: Mapping[str, table_info.TableInfo]) -> float:
    """Seconds since a server's start: what its tables' threads have done and waited."""
    return max(
        sum(value for _, value in table.table_worker_time.ListFields()) / 1000
        for table in info.values()
    )

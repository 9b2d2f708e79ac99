"""Replay on servers of its own: actors write to one of them, the learner draws from all."""

import logging
import threading
import time

import numpy as np
import reverb

from laser_tf.replay import claim, connection, replay_config, server_addresses, stored_unroll

_LOOK_SECONDS = 1.0
_ANSWER_SECONDS = 5  # after which a server counts as silent


def open_connection(
    config: replay_config.ReplayConfig,
    signature: stored_unroll.StoredUnroll,
    run: str,
    queue: str = replay_config.ONLINE,
) -> "ReplayServers":
    """Connects a learner to the servers of `config.addresses`, for itself alone.

    Args:
      config: of the tables.
      signature: of an unroll.
      run: see `claim.Claim`.
      queue: this learner's.

    Raises:
      ValueError: if a server does not answer, takes other unrolls or serves another run.
    """
    replay = ReplayServers(config, queue)
    replay.check(signature)
    replay.claim(run)
    return replay


def open_for_writing(
    config: replay_config.ReplayConfig, actor: int, queue: str = replay_config.ONLINE
) -> connection.Connection:
    """The server of `config.addresses` that an actor writes to: they take turns.

    Args:
      config: of the tables.
      actor: its index.
      queue: the learner's.
    """
    return connection.Connection(config.servers[actor % len(config.servers)], config, queue)


class ReplayServers(connection.Connection):
    """What a learner asks of one or several servers as of one; it writes to the first.

    Servers are asked in the background what they hold, so that a silent one holds up nobody.
    """

    def __init__(self, config: replay_config.ReplayConfig, queue: str):
        """Connects; nothing is sent yet."""
        super().__init__(config.servers[0], config, queue)
        self._servers = [
            connection.Connection(address, config, queue) for address in config.servers
        ]
        self._looks: list[_Look] = []

    @property
    def addresses(self) -> tuple[str, ...]:
        """Of all servers."""
        return self._config.servers

    def check(self, signature: stored_unroll.StoredUnroll) -> None:
        """Raises ValueError unless all servers answer and take such unrolls."""
        for replay in self._servers:
            try:
                replay.check(signature)
            except reverb.ReverbError as error:
                reason = f"not within {connection.TIMEOUT_SECONDS} s"
                raise ValueError(server_addresses.unreachable(replay.address, reason)) from error

    def claim(self, run: str) -> None:
        """Claims the queue on all servers and begins to look after them.

        Args:
          run: see `claim.Claim`.

        Raises:
          ClaimedError: if another run's learner has one of them.
        """
        claims = [claim.Claim(replay, run) for replay in self._servers]
        for number, one in enumerate(claims):
            try:
                one.take()
            except ValueError:
                for taken in claims[:number]:
                    taken.release()
                raise
        self._looks = [
            _Look(replay, self._config.replay_table, one)
            for replay, one in zip(self._servers, claims, strict=True)
        ]

    def items(self) -> list[int]:
        """Of each server what its share of the replayed entries goes by; 0 for a silent one.

        Unrolls or sequences; of a table of episodes the episodes.

        Raises:
          ClaimedError: if another run has taken a queue over.
        """
        return [look.check().drawable for look in self._looks]

    def size(self) -> int:
        """Items in the replay of all servers."""
        return sum(look.check().size for look in self._looks)

    def fill(self) -> float:
        """Items in all servers over what their tables hold at most, in [0, 1]."""
        most = sum(look.check().most for look in self._looks)
        return self.size() / most if most else 0.0

    def take_priorities(self, batch: stored_unroll.Batch, priorities: np.ndarray) -> None:
        """As `Connection`'s; each server gets those of the items that it gave."""
        if len(self._servers) == 1:
            super().take_priorities(batch, priorities)
            return
        for index, (replay, look) in enumerate(zip(self._servers, self._looks, strict=True)):
            chosen = ~batch.is_online & (batch.server == index)
            if chosen.any() and not look.is_silent:
                replay.update_priorities(batch.key[chosen], priorities[chosen])

    def stop(self) -> None:
        """Leaves the servers, which go on, to the next run."""
        for look in self._looks:
            look.stop()


class _Look:
    """What one server holds, asked every second, and the claim on its queue, kept up."""

    def __init__(self, replay: connection.Connection, table: str | None, claimed: claim.Claim):
        self._replay = replay
        self._table = table
        self._claim = claimed
        self._error: claim.ClaimedError | None = None
        self.size = self.most = self.drawable = 0  # items, what fits, and what can be drawn
        self.is_silent = False
        self._renewed = time.monotonic()
        self._stop = threading.Event()
        self._look()
        threading.Thread(target=self._run, name="replay_look", daemon=True).start()

    def check(self) -> "_Look":
        """Raises what ended it."""
        if self._error:
            raise self._error
        return self

    def stop(self) -> None:
        """Ends looking and gives the queue back."""
        self._stop.set()
        if not (self.is_silent or self._error):
            self._claim.release()

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            try:
                self._look()
                if time.monotonic() - self._renewed > claim.BEAT_SECONDS:
                    self._claim.keep()
                    self._renewed = time.monotonic()
            except claim.ClaimedError as error:  # handed over to the learner's thread by `check`
                self._error = error
                return
            except (RuntimeError, ValueError, reverb.ReverbError) as error:
                self._fail(error)

    def _look(self) -> None:
        tables = self._replay.client.server_info(timeout=_ANSWER_SECONDS)
        if self.is_silent:
            logging.info("the replay server at %s answers again", self._replay.address)
        self.is_silent = False
        if not self._table:
            return
        info = tables[self._table]
        self.size, self.most = info.current_size, info.max_size
        is_episodes = self._table == replay_config.EPISODES
        self.drawable = info.num_episodes if is_episodes else info.current_size

    def _fail(self, error: Exception) -> None:
        if not self.is_silent:
            logging.warning(
                "the replay server at %s does not answer (%s): nothing is drawn from it until it "
                "does", self._replay.address, str(error).splitlines()[0] if str(error) else "",
            )  # fmt: skip
        self.is_silent, self.drawable = True, 0

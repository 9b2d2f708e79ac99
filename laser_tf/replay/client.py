"""Replay as a learner sees it: a connection, and the server if this process runs it."""

from typing import Protocol

import numpy as np

from laser_tf.replay import connection, server, stored_unroll


class ReplayClient(Protocol):
    """Replay interface of a learner.

    Attributes:
      queue: Name of the learner's queue.
    """

    queue: str

    @property
    def connection(self) -> connection.ReplayConnection:
        """Connection to the server that actors write to."""

    def size(self) -> int:
        """Returns the items in replay, of `steps_per_item` agent steps each."""

    def fill(self) -> float:
        """Returns the agent steps in replay divided by its capacity, in [0, 1]."""

    def metrics(self) -> dict[str, float]:
        """Returns further metrics for TensorBoard."""

    def take_priorities(self, batch: stored_unroll.Batch, priorities: np.ndarray) -> None:
        """Updates the priorities of the replayed entries of a batch.

        Args:
          batch: Batch of arrays.
          priorities: float [B], at least 0. Priorities of online entries are ignored.
        """

    def checkpoint(self) -> None:
        """Saves what this process holds of replay.

        Raises:
          RuntimeError: If the checkpoint cannot be written.
        """

    def stop(self) -> None:
        """Disconnects, and stops a server that this process runs."""


class LearnerReplay:
    """A `ReplayClient` with one server.

    Attributes:
      connection: Connection to the server.
      queue: Name of the learner's queue.
    """

    def __init__(
        self,
        connected: connection.ReplayConnection,
        served: server.ReplayServer | None = None,
    ):
        """Uses a connection.

        Args:
          connected: Connection to the server.
          served: The server, if this process runs it.
        """
        self.connection = connected
        self.queue = connected.queue
        self._server = served

    def size(self) -> int:
        """See `ReplayClient`."""
        return self.connection.size()

    def fill(self) -> float:
        """See `ReplayClient`."""
        return self.connection.fill()

    def metrics(self) -> dict[str, float]:
        """See `ReplayClient`. There are none."""
        return {}

    def take_priorities(self, batch: stored_unroll.Batch, priorities: np.ndarray) -> None:
        """See `ReplayClient`."""
        replayed = ~batch.is_online
        if replayed.any():
            self.connection.update_priorities(batch.key[replayed], priorities[replayed])

    def checkpoint(self) -> None:
        """See `ReplayClient`. A server in another process saves itself."""
        if self._server:
            self._server.checkpoint()

    def stop(self) -> None:
        """See `ReplayClient`."""
        self.connection.stop()
        if self._server:
            self._server.stop()

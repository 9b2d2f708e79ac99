"""Replay as a learner sees it, on one server or on several."""

from typing import Protocol

import numpy as np

from laser_tf.replay import connection, stored_unroll


class LearnersReplay(Protocol):
    """A `connection.Connection`, or `several_servers.ReplayServers`."""

    queue: str  # this learner's, on every server

    @property
    def servers(self) -> tuple[connection.Connection, ...]:
        """All servers that are drawn from; this process's own actor writes to the first."""

    def size(self) -> int:
        """Items in replay, of `steps_per_item` agent steps each; 0 without a replay table."""

    def fill(self) -> float:
        """Agent steps in replay over its capacity, in [0, 1]."""

    def metrics(self) -> dict[str, float]:
        """What else there is for TensorBoard."""

    def take_priorities(self, batch: stored_unroll.Batch, priorities: np.ndarray) -> None:
        """Gives what a batch replayed the priorities that its loss returned.

        Args:
          batch: arrays.
          priorities: float [B], at least 0; of online entries none are used.
        """

    def checkpoint(self) -> None:
        """Saves it, unless it is saved by the process that runs the server.

        Raises:
          RuntimeError: if it cannot be written.
        """

    def stop(self) -> None:
        """Leaves it; a server of this process's own ends."""

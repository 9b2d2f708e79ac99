"""A run's connection to the sweep that it belongs to."""

from collections.abc import Callable
from typing import Protocol

from laser_tf.monitoring import reporting
from laser_tf.training import learner


class Membership(Protocol):
    """A run's place in a sweep; see `sweeps.sweep_client.SweepClient`.

    Attributes:
      name: Name of the member.
      index: Index of the member in the sweep, from 0.
      replay_address: Returns "host:port" of the shared replay; None if each run has its own.
    """

    name: str
    index: int
    replay_address: Callable[[], str] | None

    def resume(
        self, trained: learner.Learner, env_frames: int, returns: reporting.EpisodeReturns
    ) -> int:
        """Catches up; returns the env frames of the last copy of another member, -1 for none."""

    def start(self) -> None:
        """Starts to report."""

    def check(self) -> None:
        """Raises the error that ended the membership."""

    def throttle(self, env_frames: int, should_stop: Callable[[], bool]) -> None:
        """Blocks while the member is too far ahead."""

    def after_update(self, trained: learner.Learner, env_frames: int) -> bool:
        """Applies decisions that are due; returns whether weights have changed."""

    def close(self, *, finished: bool = False) -> None:
        """Leaves the sweep."""

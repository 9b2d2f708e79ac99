"""A run's connection to the sweep that it belongs to."""

from collections.abc import Callable
from typing import Protocol

from laser_tf.monitoring import reporting
from laser_tf.training import learner as learner_module


class Membership(Protocol):
    """A run's place in a sweep; see `sweeps.sweep_client.SweepClient` for its methods."""

    name: str
    index: int
    find_replay_address: Callable[[], str] | None

    def resume(
        self, learner: learner_module.Learner, env_frames: int, returns: reporting.EpisodeReturns
    ) -> int:
        """Applies a missed decision; returns the env frames of the last copy, or -1."""

    def start(self) -> None:
        """Starts to report progress."""

    def check(self) -> None:
        """Raises the error that ended the membership."""

    def throttle(self, env_frames: int, should_stop: Callable[[], bool]) -> None:
        """Blocks while the member is too far ahead."""

    def apply_decisions(self, learner: learner_module.Learner, env_frames: int) -> bool:
        """Applies decisions that are due; returns whether weights have changed."""

    def close(self, *, finished: bool = False) -> None:
        """Leaves the sweep."""

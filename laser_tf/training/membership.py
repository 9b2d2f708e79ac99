"""A run's connection to the sweep that it belongs to."""

from collections.abc import Callable

from laser_tf.monitoring import reporting
from laser_tf.training import learner as learner_module


class Membership:
    """Connects a run to its sweep; this base is for a run without a sweep and does nothing.

    Attributes:
      name: Name of the member.
      index: Index of the member in its sweep.
      find_replay_address: Returns the "host:port" of shared replay; None without shared replay.
    """

    name: str = ""
    index: int = 0
    find_replay_address: Callable[[], str] | None = None

    def resume(
        self, learner: learner_module.Learner, env_frames: int, returns: reporting.EpisodeReturns
    ) -> int:
        """Applies a missed decision; returns the env frames of the last copy, or -1."""
        return -1

    def start(self) -> None:
        """Starts to report progress."""

    def check(self) -> None:
        """Raises the error that ended the membership."""

    def throttle(self, env_frames: int, should_stop: Callable[[], bool]) -> None:
        """Blocks while the member is too far ahead."""

    def apply_decisions(self, learner: learner_module.Learner, env_frames: int) -> bool:
        """Applies decisions that are due; returns whether weights have changed."""
        return False

    def close(self, *, finished: bool = False) -> None:
        """Leaves the sweep."""

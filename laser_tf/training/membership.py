"""What a run asks of the sweep that it belongs to."""

from collections.abc import Callable
from typing import Protocol

from laser_tf.monitoring import reporting
from laser_tf.training import learner


class Membership(Protocol):
    """A run's place in a sweep; see `sweeps.sweep_client.SweepClient` for what each call does.

    Attributes:
      name: of the member.
      index: in the sweep.
      replay_address: finds "host:port" of the replay that all share; None: the run has its own.
    """

    name: str
    index: int
    replay_address: Callable[[], str] | None

    def resume(
        self, trained: learner.Learner, env_frames: int, returns: reporting.EpisodeReturns
    ) -> int:
        """Catches up; returns the env frames of the last copy of another member, -1 for none."""

    def start(self) -> None:
        """Begins to report."""

    def check(self) -> None:
        """Raises what ended the membership."""

    def throttle(self, env_frames: int, should_stop: Callable[[], bool]) -> None:
        """Waits for the others."""

    def after_update(self, trained: learner.Learner, env_frames: int) -> bool:
        """Decides what is due; returns whether weights have changed."""

    def close(self, *, finished: bool = False) -> None:
        """Leaves."""

"""The progress displays: how far a run is, and how far an evaluation is."""

import math
import sys
import time
from collections.abc import Sequence
from typing import Protocol, TextIO

import numpy as np
from rich import console

from laser_tf.monitoring import live_text

_EVALUATION_SECONDS = 0.5  # between two looks at an evaluation


class ProgressDisplay:
    """Shows how far a run is; a context manager."""

    def __init__(self, total_env_frames: int, title: str, stream: TextIO | None = None):
        """Creates the display.

        Args:
          total_env_frames: the run's budget, before action repeat.
          title: opens every line.
          stream: where to write, by default standard output.
        """
        self._total = total_env_frames
        self._title = title
        self._text = live_text.LiveText(stream)
        self._start: tuple[float, int] | None = None  # when, at which frame: a run may be resumed

    def __enter__(self) -> "ProgressDisplay":
        self._text.__enter__()
        return self

    def __exit__(self, *_) -> None:
        self._text.__exit__(*_)

    def update(
        self,
        *,
        env_frames: int,
        updates_per_second: float,
        mean_return: float,
        replay_fill: float,
        policy_lag: float,
        learner_busy: float,
    ) -> None:
        """Shows the newest numbers.

        Args:
          env_frames: learned from so far.
          updates_per_second: of the learner.
          mean_return: of the last 100 episodes, NaN before the first.
          replay_fill: used share of replay's capacity.
          policy_lag: learner updates between acting and learning, NaN if unknown.
          learner_busy: share of the time that the learner computes.
        """
        frames_per_second, seconds_left = self._pace(env_frames)
        share = env_frames / self._total
        left = f"left {duration(seconds_left)}"
        numbers = (
            f"{frames_per_second:,.0f} frames/s",
            f"{updates_per_second:.1f} updates/s",
            f"mean return {number(mean_return, 2)}",
            f"replay {replay_fill:.0%} full",
            f"actor {number(policy_lag, 1)} updates behind",
            f"learner computes {learner_busy:.0%} of the time",
        )
        frames = f"frames {env_frames:,}"
        self._text.show(
            "  ".join((f"{self._title}: {frames} ({share:.1%})", *numbers, left)),
            console.Group(
                live_text.title(self._title),
                live_text.bar(share, f"{share:.1%}", left),
                live_text.items((f"{frames} of {self._total:,}", *numbers)),
            ),
        )

    def _pace(self, env_frames: int) -> tuple[float, float]:
        """Frames per second since this process's first update, and seconds left at that pace."""
        now = time.monotonic()
        if self._start is None:
            self._start = now, env_frames
        seconds, frames = now - self._start[0], env_frames - self._start[1]
        if not frames or not seconds:
            return 0.0, math.nan
        return frames / seconds, max(0, self._total - env_frames) * seconds / frames


class Played(Protocol):
    """An episode that has been played."""

    @property
    def episode_return(self) -> float:
        """Raw."""


class EvaluationDisplay:
    """Shows how many of a number of episodes are played; a context manager."""

    def __init__(self, episodes: int, title: str, stream: TextIO | None = None):
        """Creates the display.

        Args:
          episodes: how many will be played, of all tasks together.
          title: opens every line.
          stream: where to write, by default standard error: a result may go to standard output.
        """
        self._episodes = episodes
        self._title = title
        self._text = live_text.LiveText(stream or sys.stderr)
        self._start = time.monotonic()
        self._next = 0.0

    def __enter__(self) -> "EvaluationDisplay":
        self._text.__enter__()
        return self

    def __exit__(self, *_) -> None:
        self._text.__exit__(*_)

    def update(self, games: Sequence["Played"], agent_steps: int) -> None:
        """Shows the newest numbers; cheap enough to be called at every step.

        Args:
          games: that have been played.
          agent_steps: of all environments together.
        """
        now = time.monotonic()
        if now < self._next and len(games) < self._episodes:
            return
        self._next = now + _EVALUATION_SECONDS
        share = len(games) / self._episodes
        mean = np.mean([game.episode_return for game in games]) if games else math.nan
        seconds = (now - self._start) * (1 - share) / share if games else math.nan
        numbers = (
            f"{len(games):,} of {self._episodes:,} episodes",
            f"mean return so far {number(mean, 2)}",
            f"{agent_steps:,} agent steps",
        )
        left = f"left {duration(seconds)}"
        self._text.show(
            "  ".join((f"{self._title}: {numbers[0]}", *numbers[1:], left)),
            console.Group(
                live_text.title(self._title),
                live_text.bar(share, f"{share:.1%}", left),
                live_text.items(numbers),
            ),
        )


def number(value: float, digits: int) -> str:
    """With so many decimals; a dash for NaN."""
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def duration(seconds: float) -> str:
    """As h:mm:ss; a dash for NaN."""
    if math.isnan(seconds):
        return "-"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"

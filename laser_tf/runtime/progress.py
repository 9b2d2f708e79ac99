"""The progress display: one line of how far a run is."""

import math
import time
from typing import TextIO

from laser_tf.runtime import live_text


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
        self._text.show(
            "  ".join(
                (
                    f"{self._title}: frames {env_frames:,} ({env_frames / self._total:.1%})",
                    f"{frames_per_second:,.0f} frames/s",
                    f"{updates_per_second:.1f} updates/s",
                    f"return {number(mean_return, 2)}",
                    f"replay {replay_fill:.0%}",
                    f"lag {number(policy_lag, 1)}",
                    f"busy {learner_busy:.0%}",
                    f"left {duration(seconds_left)}",
                )
            )
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

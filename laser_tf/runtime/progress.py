"""The progress display: one live line on a terminal, plain lines elsewhere."""

import logging
import math
import sys
import time
from typing import TextIO

from rich import console, live, text

PLAIN_SECONDS = 10.0


class ProgressDisplay:
    """Shows how far a run is; a context manager.

    On a terminal one line is redrawn in place, and lines that are logged meanwhile appear above it.
    Elsewhere (a pipe, a file, CI) a plain line is printed every few seconds.
    """

    def __init__(self, total_env_frames: int, title: str, stream: TextIO | None = None):
        """Creates the display.

        Args:
          total_env_frames: the run's budget, before action repeat.
          title: opens every line.
          stream: where to write, by default standard output.
        """
        self._total = total_env_frames
        self._title = title
        stream = stream or sys.stdout
        # Asked here: CI services set FORCE_COLOR, by which rich would take a pipe for a terminal.
        self._console = console.Console(file=stream, force_terminal=stream.isatty())
        self._live = live.Live(console=self._console, auto_refresh=False)
        self._is_live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._log_streams: list[tuple[logging.StreamHandler, TextIO]] = []
        self._start: tuple[float, int] | None = None  # when, at which frame: a run may be resumed
        self._next_plain = 0.0
        self._last_line = ""

    def __enter__(self) -> "ProgressDisplay":
        if self._is_live:
            self._live.start()
            self._take_over_logging()
        return self

    def __exit__(self, *_) -> None:
        if self._is_live:
            for handler, stream in self._log_streams:
                handler.setStream(stream)
            self._live.stop()
        elif self._last_line:
            self._print_plain()

    def _take_over_logging(self) -> None:
        # Handlers keep the stream they were made with, so they bypass the `sys.stderr` that rich
        # puts in place, and the next redraw would wipe out what they wrote.
        for handler in logging.getLogger().handlers:
            stream = getattr(handler, "stream", None)
            if stream and stream.isatty():
                handler.setStream(sys.stderr)
                self._log_streams.append((handler, stream))

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
        self._last_line = "  ".join(
            (
                f"{self._title}: frames {env_frames:,} ({env_frames / self._total:.1%})",
                f"{frames_per_second:,.0f} frames/s",
                f"{updates_per_second:.1f} updates/s",
                f"return {_number(mean_return, 2)}",
                f"replay {replay_fill:.0%}",
                f"lag {_number(policy_lag, 1)}",
                f"busy {learner_busy:.0%}",
                f"left {_duration(seconds_left)}",
            )
        )
        if self._is_live:
            self._live.update(text.Text(self._last_line), refresh=True)
        elif time.monotonic() >= self._next_plain:
            self._print_plain()

    def _pace(self, env_frames: int) -> tuple[float, float]:
        """Frames per second since this process's first update, and seconds left at that pace."""
        now = time.monotonic()
        if self._start is None:
            self._start = now, env_frames
        seconds, frames = now - self._start[0], env_frames - self._start[1]
        if not frames or not seconds:
            return 0.0, math.nan
        return frames / seconds, max(0, self._total - env_frames) * seconds / frames

    def _print_plain(self) -> None:
        self._next_plain = time.monotonic() + PLAIN_SECONDS
        # Not the console: it would break the line at an assumed width.
        print(self._last_line, file=self._console.file, flush=True)
        self._last_line = ""


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _duration(seconds: float) -> str:
    if math.isnan(seconds):
        return "-"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"

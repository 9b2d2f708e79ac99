"""Progress displays: redrawn in place on a terminal, elsewhere a plain line now and then."""

import datetime
import logging
import math
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self, TextIO

import numpy as np
from rich import columns, console, live, progress_bar, table, text

from laser_tf.host import log_messages

_PLAIN_SECONDS = 10.0
_EVALUATION_SECONDS = 0.5


class LiveText:
    """A context manager that shows the newest state on a stream, by default standard output.

    On a terminal it is redrawn in place, and lines logged in the meantime appear above it.
    Elsewhere (a pipe, a file, CI) its plain text is printed every few seconds.
    """

    def __init__(self, stream: TextIO | None = None):
        stream = stream or sys.stdout
        # CI services set FORCE_COLOR, with which rich would take a pipe for a terminal.
        self._console = console.Console(file=stream, force_terminal=stream.isatty())
        self._live = live.Live(console=self._console, auto_refresh=False)
        self._is_live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._log_streams: list[tuple[logging.StreamHandler, TextIO]] = []
        self._next_plain = 0.0
        self._unprinted = ""
        self._notice = log_messages.FailureNotice(on_recovery="The progress can be shown again")

    def __enter__(self) -> Self:
        if not self._is_live:
            return self
        self._live.start()
        # Handlers bypass the `sys.stderr` that rich has replaced, and the next redraw would erase
        # their output.
        handlers: list[Any] = logging.getLogger().handlers
        for handler in handlers:
            stream = getattr(handler, "stream", None)
            if stream and stream.isatty():
                handler.setStream(sys.stderr)
                self._log_streams.append((handler, stream))
        return self

    def __exit__(self, *_) -> None:
        if self._is_live:
            for handler, stream in self._log_streams:
                handler.setStream(stream)
            self._live.stop()
        elif self._unprinted:
            self._print()

    def show(self, plain: str, drawn: console.RenderableType) -> None:
        """Replaces the state, in plain lines of text and as it is drawn on a terminal."""
        if self._is_live:
            self._live.update(drawn, refresh=True)
            return
        self._unprinted = plain
        if time.monotonic() >= self._next_plain:
            self._print()

    def _print(self) -> None:
        self._next_plain = time.monotonic() + _PLAIN_SECONDS
        try:
            # The console would wrap the lines at an assumed width.
            print(self._unprinted, file=self._console.file, flush=True)
        except OSError as error:  # A full disk or a closed pipe must not end the run.
            self._notice.failed(f"Cannot show the progress: {error.strerror}")
        else:
            self._notice.succeeded()
        self._unprinted = ""


def render(
    title: str, share: float, seconds_left: float, numbers: Sequence[str]
) -> tuple[str, console.Group]:
    """Returns a plain line, and a title, a bar and items for a terminal.

    `share` of the work, 0 to 1, is complete. `seconds_left` is NaN if unknown. The first of
    `numbers` is the amount of completed work.
    """
    amount, *others = numbers
    is_unknown = math.isnan(seconds_left)
    left = f"left {'-' if is_unknown else datetime.timedelta(seconds=round(seconds_left))}"
    bar = table.Table.grid(padding=(0, 2, 0, 0), expand=True)
    bar.add_column(ratio=1)
    for _ in range(2):
        bar.add_column(no_wrap=True, justify="right")
    bar.add_row(progress_bar.ProgressBar(total=1.0, completed=share), f"{share:.1%}", left)
    return "  ".join((f"{title}: {amount} ({share:.1%})", *others, left)), console.Group(
        text.Text(title, style="bold", no_wrap=True, overflow="ellipsis"),
        bar,
        columns.Columns([text.Text(number) for number in numbers], padding=(0, 3)),
    )


class Progress(NamedTuple):
    """Progress of a run."""

    env_frames: int  # learned from: agent steps times action repeat
    updates_per_second: float  # of the learner
    mean_return: float  # of the last 100 episodes, NaN before the first
    replay_fill: float  # used share of replay's capacity
    policy_lag: float  # learner updates between acting and learning, NaN if unknown
    learner_busy: float  # share of the time that the learner computes


class ProgressDisplay(LiveText):
    """Shows how far a run is."""

    def __init__(self, total_env_frames: int, title: str, stream: TextIO | None = None):
        super().__init__(stream)
        self._total = total_env_frames
        self._title = title
        self._start: tuple[float, int] | None = None  # time and frames of this process's first call

    def update(self, progress: Progress) -> None:
        """Shows the newest numbers."""
        frames_per_second, seconds_left = self._pace(progress.env_frames)
        numbers = (
            f"frames {progress.env_frames:,} of {self._total:,}",
            f"{frames_per_second:,.0f} frames/s",
            f"{progress.updates_per_second:.1f} updates/s",
            f"mean return {number(progress.mean_return, 2)}",
            f"replay {progress.replay_fill:.0%} full",
            f"actor {number(progress.policy_lag, 1)} updates behind",
            f"learner computes {progress.learner_busy:.0%} of the time",
        )
        share = progress.env_frames / self._total
        self.show(*render(self._title, share, seconds_left, numbers))

    def show_startup(self, activities: Mapping[str, str]) -> None:
        """Shows what each process of a run does before the first update."""
        names: dict[str, list[str]] = {}
        for name, activity in activities.items():
            names.setdefault(activity, []).append(name)
        lines = [f"{', '.join(group)}: {activity}" for activity, group in names.items()]
        title = text.Text(self._title, style="bold", no_wrap=True, overflow="ellipsis")
        self.show("  ".join([self._title, *lines]), console.Group(title, *map(text.Text, lines)))

    def _pace(self, env_frames: int) -> tuple[float, float]:
        """Returns frames per second since the first call, and seconds left at that pace."""
        now = time.monotonic()
        if self._start is None:
            self._start = now, env_frames
        seconds, frames = now - self._start[0], env_frames - self._start[1]
        if not frames or not seconds:
            return 0.0, math.nan
        return frames / seconds, max(0, self._total - env_frames) * seconds / frames


class EvaluationDisplay(LiveText):
    """Shows how many episodes are complete, by default on standard error.

    Standard output may get the result.
    """

    def __init__(self, episodes: int, title: str, stream: TextIO | None = None):
        super().__init__(stream or sys.stderr)
        self._episodes = episodes
        self._title = title
        self._start = time.monotonic()
        self._next = 0.0

    def update(self, episodes: Sequence[Any], agent_steps: int) -> None:
        """Shows the newest numbers; cheap enough for every step."""
        now = time.monotonic()
        if now < self._next and len(episodes) < self._episodes:
            return
        self._next = now + _EVALUATION_SECONDS
        share = len(episodes) / self._episodes
        mean = float(np.mean([e.episode_return for e in episodes])) if episodes else math.nan
        seconds = (now - self._start) * (1 - share) / share if episodes else math.nan
        numbers = (
            f"{len(episodes):,} of {self._episodes:,} episodes",
            f"mean return so far {number(mean, 2)}",
            f"{agent_steps:,} agent steps",
        )
        self.show(*render(self._title, share, seconds, numbers))


def number(value: float, digits: int) -> str:
    """Returns the number with so many decimals; a dash for NaN."""
    return "-" if math.isnan(value) else f"{value:.{digits}f}"

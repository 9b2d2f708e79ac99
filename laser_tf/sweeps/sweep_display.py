"""The progress display of a sweep: one line for all members together and one for each."""

import collections
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TextIO

import numpy as np
from rich import console, progress_bar, table

from laser_tf.monitoring import progress

_PACE_SECONDS = 30.0  # Over which frames per second are measured.


class _Row(NamedTuple):
    """A line of the display."""

    name: str
    env_frames: int
    share: float  # Of the budget.
    pace: float  # Env frames per second.
    mean_return: float  # NaN before the first episode.
    state: str


class SweepDisplay(progress.LiveText):
    """Shows the progress of all members; a context manager."""

    def __init__(self, total_env_frames: int, title: str, stream: TextIO | None = None):
        """Creates the display; `total_env_frames` is the budget of one member."""
        super().__init__(stream)
        self._total = total_env_frames
        self._title = title
        self._history: dict[str, collections.deque] = collections.defaultdict(collections.deque)

    def update(self, reports: Mapping[str, Mapping[str, Any]], states: Mapping[str, str]) -> None:
        """Shows each member's last report, which may be empty, and its state, e.g. "running"."""
        rows = []
        for name, state in states.items():
            report = reports.get(name, {})
            frames = report.get("env_frames", 0)
            mean_return = report.get("mean_return", math.nan)
            pace = self._pace(name, frames)
            rows.append(_Row(name, frames, frames / self._total, pace, mean_return, state))
        done, budget = sum(row.env_frames for row in rows), self._total * len(rows)
        pace = sum(row.pace for row in rows)
        seconds_left = max(0, budget - done) / pace if pace else math.nan
        best = np.fmax.reduce([row.mean_return for row in rows])  # Ignores NaN.
        numbers = (
            f"frames {done:,} of {budget:,}",
            f"{pace:,.0f} frames/s",
            f"best mean return {progress.number(best, 2)}",
        )
        plain, drawn = progress.render(self._title, done / budget, seconds_left, numbers)
        # The total comes first, since a short terminal cuts the end.
        text = "\n".join([*map(_line, rows), plain])
        self.show(text, console.Group(drawn, _table(rows)))

    def _pace(self, name: str, env_frames: int) -> float:
        """Returns frames per second of the last `_PACE_SECONDS`, or since the last restart."""
        history, now = self._history[name], time.monotonic()
        if history and env_frames < history[-1][1]:
            history.clear()
        history.append((now, env_frames))
        while now - history[0][0] > _PACE_SECONDS:
            history.popleft()
        seconds = now - history[0][0]
        return (env_frames - history[0][1]) / seconds if seconds else 0.0


def _line(row: _Row) -> str:
    return (
        f"{row.name}: frames {row.env_frames:,} ({row.share:.1%})  {row.pace:,.0f} frames/s  "
        f"mean return {progress.number(row.mean_return, 2)}  {row.state}"
    )


def _table(rows: Sequence[_Row]) -> table.Table:
    """On a narrow terminal, Rich shortens the bars first, then the states."""
    members = table.Table(box=None, expand=True, padding=(0, 1, 0, 0), pad_edge=False)
    members.add_column("member", no_wrap=True, min_width=max(len(row.name) for row in rows))
    members.add_column("", ratio=1)
    for head in ("  done", "frames/s", "return"):
        members.add_column(head, justify="right", no_wrap=True, min_width=len(head))
    members.add_column("state", no_wrap=True)
    for row in rows:
        members.add_row(
            row.name,
            progress_bar.ProgressBar(total=1.0, completed=row.share),
            f"{row.share:.1%}",
            f"{row.pace:,.0f}",
            progress.number(row.mean_return, 2),
            row.state,
        )
    return members

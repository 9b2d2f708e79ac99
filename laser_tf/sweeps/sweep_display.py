"""The sweep's progress: one line for all members together and one for each."""

import collections
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TextIO

import numpy as np
from rich import console, progress_bar, table

from laser_tf.monitoring import live_text, progress

_PACE_SECONDS = 30.0  # over which frames per second are measured


class _Row(NamedTuple):
    """What is shown of a member."""

    name: str
    env_frames: int
    pace: float  # env frames a second
    mean_return: float  # NaN before the first episode
    state: str


class SweepDisplay:
    """Shows how far the members are; a context manager."""

    def __init__(self, total_env_frames: int, title: str, stream: TextIO | None = None):
        """Creates the display.

        Args:
          total_env_frames: the budget of one member.
          title: opens the line of all together.
          stream: where to write, by default standard output.
        """
        self._total = total_env_frames
        self._title = title
        self._text = live_text.LiveText(stream)
        self._history: dict[str, collections.deque] = collections.defaultdict(collections.deque)

    def __enter__(self) -> "SweepDisplay":
        self._text.__enter__()
        return self

    def __exit__(self, *_) -> None:
        self._text.__exit__(*_)

    def update(self, reports: Mapping[str, Mapping[str, Any]], states: Mapping[str, str]) -> None:
        """Shows the newest numbers.

        Args:
          reports: name -> what the member reported last, may be empty.
          states: name -> a word, e.g. "running".
        """
        rows = [self._row(name, reports.get(name, {}), state) for name, state in states.items()]
        done, budget = sum(row.env_frames for row in rows), self._total * len(rows)
        pace = sum(row.pace for row in rows)
        share = done / budget
        left = f"left {progress.duration(max(0, budget - done) / pace if pace else math.nan)}"
        best = np.fmax.reduce([row.mean_return for row in rows])  # passes over NaN
        numbers = (f"{pace:,.0f} frames/s", f"best mean return {progress.number(best, 2)}")
        total = "  ".join((f"{self._title}: frames {done:,} ({share:.1%})", *numbers, left))
        self._text.show(
            "\n".join([*(self._line(row) for row in rows), total]),
            console.Group(
                live_text.title(self._title),
                # First, since a terminal with fewer lines than members cuts what is below.
                live_text.bar(share, f"{share:.1%}", left),
                live_text.items((f"frames {done:,} of {budget:,}", *numbers)),
                self._table(rows),
            ),
        )

    def _row(self, name: str, report: Mapping[str, Any], state: str) -> _Row:
        env_frames, mean_return = report.get("env_frames", 0), report.get("mean_return")
        return _Row(
            name,
            env_frames,
            self._pace(name, env_frames),
            math.nan if mean_return is None else mean_return,
            state,
        )

    def _line(self, row: _Row) -> str:
        return (
            f"{row.name}: frames {row.env_frames:,} ({row.env_frames / self._total:.1%})  "
            f"{row.pace:,.0f} frames/s  mean return {progress.number(row.mean_return, 2)}  "
            f"{row.state}"
        )

    def _table(self, rows: Sequence[_Row]) -> table.Table:
        """One row a member; on a narrow terminal the bars give way first, then the states."""
        members = table.Table(box=None, expand=True, padding=(0, 1, 0, 0), pad_edge=False)
        members.add_column("member", no_wrap=True, min_width=max(len(row.name) for row in rows))
        members.add_column("", ratio=1)
        for head in ("  done", "frames/s", "return"):
            members.add_column(head, justify="right", no_wrap=True, min_width=len(head))
        members.add_column("state", no_wrap=True)
        for row in rows:
            share = row.env_frames / self._total
            members.add_row(
                row.name,
                progress_bar.ProgressBar(total=1.0, completed=share),
                f"{share:.1%}",
                f"{row.pace:,.0f}",
                progress.number(row.mean_return, 2),
                row.state,
            )
        return members

    def _pace(self, name: str, env_frames: int) -> float:
        """Frames per second of late; a restart from a checkpoint begins anew."""
        history, now = self._history[name], time.monotonic()
        if history and env_frames < history[-1][1]:
            history.clear()
        history.append((now, env_frames))
        while now - history[0][0] > _PACE_SECONDS:
            history.popleft()
        seconds = now - history[0][0]
        return (env_frames - history[0][1]) / seconds if seconds else 0.0

"""The sweep's progress: one line an agent and one for all together."""

import collections
import math
import time
from collections.abc import Mapping
from typing import Any, TextIO

from laser_tf.runtime import live_text, progress

_PACE_SECONDS = 30.0  # over which frames per second are measured


class SweepDisplay:
    """Shows how far the agents are; a context manager."""

    def __init__(self, total_env_frames: int, title: str, stream: TextIO | None = None):
        """Creates the display.

        Args:
          total_env_frames: the budget of one agent.
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
          reports: name -> what the agent reported last, may be empty.
          states: name -> a word, e.g. "running".
        """
        frames = {name: reports.get(name, {}).get("env_frames", 0) for name in states}
        paces = {name: self._pace(name, count) for name, count in frames.items()}
        lines = [
            f"{name}: frames {frames[name]:,} ({frames[name] / self._total:.1%})  "
            f"{paces[name]:,.0f} frames/s  "
            f"return {_number(reports.get(name, {}).get('mean_return'))}  {states[name]}"
            for name in states
        ]
        done, budget, pace = sum(frames.values()), self._total * len(states), sum(paces.values())
        left = max(0, budget - done) / pace if pace else math.nan
        best = max(
            (report.get("mean_return") for report in reports.values()),
            key=lambda value: -math.inf if value is None else value,
            default=None,
        )
        total = (
            f"{self._title}: frames {done:,} ({done / budget:.1%})  {pace:,.0f} frames/s  "
            f"best return {_number(best)}  left {progress.duration(left)}"
        )
        self._text.show("\n".join([*lines, total]))

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


def _number(value: float | None) -> str:
    return progress.number(math.nan if value is None else value, 2)

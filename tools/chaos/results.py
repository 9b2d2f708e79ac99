"""Results of faults: recovery times and lost unrolls."""

import collections
import dataclasses
import pathlib
import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

_COUNTERS = {  # Metric of a learner -> column.
    "replay/lost_unrolls": "lost_unrolls",
    "replay/duplicated_unrolls": "duplicated_unrolls",
}
_DROPPED = "learner/non_finite_updates"


@dataclasses.dataclass
class Outcome:
    """The outcome of one fault."""

    fault: str
    begun: float  # Seconds since the epoch.
    seconds: float | None = None  # From the fault's end to recovery; None: no recovery.
    lost_unrolls: float = 0.0
    duplicated_unrolls: float = 0.0


def summarise(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Returns one row for each type of fault."""
    frame = pd.DataFrame(outcomes, columns=[field.name for field in dataclasses.fields(Outcome)])
    frame["seconds"] = frame["seconds"].astype(float)
    grouped = frame.groupby("fault")
    return pd.DataFrame(
        {
            "times": grouped.size(),
            "recovered_median_seconds": grouped["seconds"].median().round(1),
            "recovered_max_seconds": grouped["seconds"].agg(
                lambda seconds: "never" if seconds.isna().any() else f"{seconds.max():.1f}"
            ),
            "lost_unrolls": grouped["lost_unrolls"].sum(),
            "duplicated_unrolls": grouped["duplicated_unrolls"].sum(),
        }
    ).reset_index()


class Curves:
    """All metrics of all learners' processes, including rows that a resumed run has dropped."""

    def __init__(self, folder: pathlib.Path):
        """Reads the event files in a run's directory `tensorboard`."""
        self.steps: list[tuple[str, float, float]] = []  # Column, time, count since the last row.
        self.env_frames = 0  # Learned from, also repeatedly.
        self.not_finite: set[str] = set()  # Names of metrics.
        self.dropped_updates = 0.0
        self._last: dict[tuple[int, str], float] = {}
        frames: dict[int, list[int]] = collections.defaultdict(list)
        for path in sorted(folder.glob("events.*")):
            # A process starts another file after a row that could not be written.
            process = int(re.search(r"\.(\d+)\.\d+\.v2$", path.name)[1])
            self._read(path, process, frames[process])
        self.env_frames = sum(steps[-1] - steps[0] for steps in frames.values() if steps)

    def _read(self, path: pathlib.Path, process: int, frames: list[int]) -> None:
        import tensorflow as tf
        from tensorboard.backend.event_processing import event_file_loader

        for event in event_file_loader.EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name in ("", "scalars"):
                    number = float(tf.make_ndarray(value.tensor)) if value.HasField("tensor") else 0
                    self._add(process, event.wall_time, value.tag, number)
            if event.step and event.summary.value:
                frames.append(event.step)

    def _add(self, process: int, time: float, metric: str, number: float) -> None:
        if not np.isfinite(number):
            self.not_finite.add(metric)
        if metric == _DROPPED:
            self.dropped_updates = max(self.dropped_updates, number)
        if column := _COUNTERS.get(metric):
            self.steps.append((column, time, number - self._last.get((process, metric), 0.0)))
            self._last[process, metric] = number

    def totals(self) -> dict[str, float]:
        """Returns the numbers of lost and of duplicated unrolls."""
        totals = dict.fromkeys(_COUNTERS.values(), 0.0)
        for column, _, count in self.steps:
            totals[column] += count
        return totals


def attribute(outcomes: Sequence[Outcome], steps: Sequence[tuple[str, float, float]]) -> None:
    """Adds each count of `Curves.steps` to the newest fault before it."""
    for column, time, count in steps:
        before = [outcome for outcome in outcomes if outcome.begun <= time]
        if before:
            setattr(before[-1], column, getattr(before[-1], column) + count)

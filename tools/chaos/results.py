"""Results of faults: recovery times and lost unrolls."""

import dataclasses
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

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


class Curves(NamedTuple):
    """All metrics of all learners' processes, including rows that a resumed run has dropped."""

    steps: list[tuple[str, float, float]]  # Column, time, count since the last row.
    totals: dict[str, float]  # Column -> count.
    env_frames: int  # Learned from, also repeatedly.
    not_finite: set[str]  # Names of metrics.
    dropped_updates: float


def read_curves(folder: pathlib.Path) -> Curves:
    """Reads the event files in a run's directory `tensorboard`."""
    names = ["process", "time", "env_frames", "metric", "value"]
    rows = pd.DataFrame(_rows(folder), columns=names).astype({"value": float})
    frames = rows.groupby("process")["env_frames"]
    counts = rows[rows["metric"].isin(_COUNTERS)]
    last = counts.groupby(["process", "metric"])["value"].shift(fill_value=0.0)
    columns, new = counts["metric"].map(_COUNTERS), counts["value"] - last
    return Curves(
        list(zip(columns, counts["time"], new, strict=True)),
        dict.fromkeys(_COUNTERS.values(), 0.0) | new.groupby(columns).sum().to_dict(),
        int((frames.last() - frames.first()).sum()),
        set(rows["metric"][~np.isfinite(rows["value"])]),
        max(rows["value"][rows["metric"] == _DROPPED], default=0.0),
    )


def _rows(folder: pathlib.Path) -> Iterator[tuple[int, float, int, str, float]]:
    """Yields process, time, env frames, name and value of each scalar in the order of writing."""
    import tensorflow as tf
    from tensorboard.backend.event_processing import event_file_loader

    for path in sorted(folder.glob("events.*")):
        # A process starts another file after a row that could not be written.
        process = int(re.search(r"\.(\d+)\.\d+\.v2$", path.name)[1])
        for event in event_file_loader.EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name == "scalars":
                    number = float(tf.make_ndarray(value.tensor))
                    yield process, event.wall_time, event.step, value.tag, number


def attribute(outcomes: Sequence[Outcome], steps: Sequence[tuple[str, float, float]]) -> None:
    """Adds each count of `Curves.steps` to the newest fault before it."""
    for column, time, count in steps:
        before = [outcome for outcome in outcomes if outcome.begun <= time]
        if before:
            setattr(before[-1], column, getattr(before[-1], column) + count)

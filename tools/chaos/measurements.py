"""What a learner has measured: unrolls that were lost, values that are not finite."""

import pathlib
import re

import numpy as np
import tensorflow as tf
from tensorboard.backend.event_processing import event_file_loader

_COUNTERS = {
    "lost_unrolls": "replay/lost_unrolls",
    "duplicated_unrolls": "replay/duplicated_unrolls",
}
_DROPPED = "learner/non_finite_updates"


class Curves:
    """All rows of all learners' processes, also those that were dropped on resuming."""

    def __init__(self, folder: pathlib.Path):
        """Reads the events files of a run's folder `tensorboard`."""
        self.steps: dict[str, list[tuple[float, float]]] = {name: [] for name in _COUNTERS}
        self.env_frames = 0  # learned from, counting again what was learned again
        self.not_finite: set[str] = set()  # names of metrics
        self.dropped_updates = 0.0
        self.metrics: set[str] = set()
        last: dict[tuple[int, str], float] = {}
        first_frames: dict[int, int] = {}
        last_frames: dict[int, int] = {}
        for path in sorted(folder.glob("events.*")):
            # A process begins another file after a row that could not be written.
            process = int(re.search(r"\.(\d+)\.\d+\.v2$", path.name)[1])
            for event in event_file_loader.EventFileLoader(str(path)).Load():
                for value in event.summary.value:
                    if value.metadata.plugin_data.plugin_name not in ("", "scalars"):
                        continue
                    number = float(tf.make_ndarray(value.tensor)) if value.HasField("tensor") else 0
                    self._take(process, event.wall_time, value.tag, number, last)
                if event.step and event.summary.value:
                    first_frames.setdefault(process, event.step)
                    last_frames[process] = event.step
        self.env_frames = sum(last_frames[p] - first_frames[p] for p in first_frames)

    def _take(
        self, process: int, time: float, tag: str, number: float, last: dict[tuple[int, str], float]
    ) -> None:
        self.metrics.add(tag)
        if not np.isfinite(number):
            self.not_finite.add(tag)
        if tag == _DROPPED:
            self.dropped_updates = max(self.dropped_updates, number)
        for name, counter in _COUNTERS.items():
            if tag == counter:
                self.steps[name].append((time, number - last.get((process, name), 0.0)))
                last[process, name] = number

    def total(self, name: str) -> float:
        """How many unrolls were lost, or duplicated."""
        return sum(count for _, count in self.steps[name])

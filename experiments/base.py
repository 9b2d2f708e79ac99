"""Description of an experiment: which runs it trains, and how they are drawn."""

import dataclasses
import pathlib
import re
from collections.abc import Callable
from typing import Any

from laser_tf.plotting import curves

Overrides = dict[str, Any]  # of a configuration, "section.key" -> value


@dataclasses.dataclass(frozen=True)
class Condition:
    """One curve of a figure."""

    label: str
    overrides: Overrides = dataclasses.field(default_factory=dict)
    config: str = ""  # own configuration; "": the experiment's

    def workdir(self, folder: pathlib.Path, task: str, seed: int) -> pathlib.Path:
        """Returns the directory of a run or sweep."""
        name = re.sub(r"[^a-z0-9.]+", "_", self.label.lower()).strip("_")
        return folder / name / f"seed_{seed}" / task


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A figure or table of a paper, at a scale for two CPU cores."""

    config: str  # e.g. "laser:minatar"
    conditions: tuple[Condition, ...]
    draw: Callable[[curves.Runs, pathlib.Path], None]  # runs, directory of the report
    command: str = "train"  # trains a run; "sweep" trains a sweep
    tasks: tuple[str, ...] = ()  # (): the configuration's task
    overrides: Overrides = dataclasses.field(default_factory=dict)  # of all conditions
    history_lengths: tuple[int, ...] = ()  # agent steps remembered in additional evaluations

    def runs(self, folder: pathlib.Path, tasks: tuple[str, ...], seeds: int) -> curves.Runs:
        """Returns the directories of all runs or sweeps."""
        numbers = range(1, seeds + 1)
        return {
            task: {c.label: [c.workdir(folder, task, n) for n in numbers] for c in self.conditions}
            for task in tasks
        }

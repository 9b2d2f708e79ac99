"""Description of an experiment, and all experiments by name."""

import dataclasses
import importlib
import pathlib
import re
from collections.abc import Callable
from typing import Any

from laser_tf import config_values
from laser_tf.plotting import tables

Overrides = dict[str, Any]  # of a configuration, "section.key" -> value

_INFRASTRUCTURE = ("__init__", "base", "plan", "run")


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
    draw: Callable[[tables.Runs, pathlib.Path], object]  # runs, directory of the report
    tasks: tuple[str, ...] = ()  # (): the configuration's task
    overrides: Overrides = dataclasses.field(default_factory=dict)  # of all conditions
    history_lengths: tuple[int, ...] = ()  # agent steps remembered in additional evaluations


def find() -> dict[str, Experiment]:
    """Returns all experiments by name: the `EXPERIMENTS` of the modules of this package."""
    found: dict[str, Experiment] = {}
    for path in pathlib.Path(__file__).parent.glob("*.py"):
        if path.stem not in _INFRASTRUCTURE:
            found |= importlib.import_module(f"experiments.{path.stem}").EXPERIMENTS
    return dict(sorted(found.items()))


def load(name: str) -> Experiment:
    """Returns an experiment; raises UserError for an unknown name."""
    known = find()
    return known[config_values.check_name("--experiment", name, known)]

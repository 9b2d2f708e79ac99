"""A search for hyper-parameters: trials are runs with different values, each on its own replay."""

import csv
import io
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from laser_tf.sweeps import sweep_config
from laser_tf.workdir import atomic

TRIALS_FILE = "trials.csv"
RUNNING, COMPLETE, PRUNED, FAILED = "running", "complete", "pruned", "failed"


class Trial(NamedTuple):
    """A run of a search."""

    number: int
    values: Mapping[str, Any]  # section.key -> value
    state: str = RUNNING
    mean_return: float | None = None  # of the evaluation at the end, or the last before pruning

    @property
    def name(self) -> str:
        """Name of the run directory."""
        return f"trial_{self.number:03d}"


class RandomSearch:
    """Samples independent values, the same ones in each process; prunes no trial."""

    def __init__(self, space: sweep_config.Config):
        """Creates a search of `space.samples` trials."""
        self._space = space
        self._trials: dict[int, Trial] = {}

    def trials(self) -> Sequence[Trial]:
        """Returns all trials so far."""
        return list(self._trials.values())

    def propose(self) -> Iterator[Trial]:
        """Yields all trials to run, including those that earlier processes have run."""
        for number, values in enumerate(self._space.members()):
            self._trials[number] = Trial(number, values)
            yield self._trials[number]

    def should_prune(self, number: int, evaluations: Mapping[int, float]) -> bool:
        """Returns whether a running trial is unlikely to become the best.

        `evaluations` has the mean returns of all its periodic evaluations, by their number from 1.
        """
        return False

    def end(self, number: int, state: str, mean_return: float | None) -> None:
        """Records the end of a trial."""
        self._trials[number] = self._trials[number]._replace(state=state, mean_return=mean_return)


def best(trials: Sequence[Trial]) -> Trial | None:
    """Returns the complete trial with the highest mean return, or None."""
    complete = [trial for trial in trials if trial.state == COMPLETE]
    return max(complete, key=lambda trial: trial.mean_return, default=None)


def write_table(workdir: pathlib.Path, trials: Sequence[Trial]) -> None:
    """Writes `trials.csv`: number, state, mean return and values of each trial."""
    rows = [
        {"trial": trial.number, "state": trial.state, "mean_return": trial.mean_return}
        | dict(trial.values)
        for trial in trials
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    atomic.write(workdir / TRIALS_FILE, text.getvalue())

"""`evaluations.csv`: the evaluations that were played beside a run's training.

A row of each task for each of them. Columns are those of `Row`; `normalised_score` is empty where
there is no reference. The evaluation at a run's end, whose file is `evaluation.json`, is no row.
"""

import math
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from laser_tf.monitoring import row_file, tensorboard
from laser_tf.scores import reference

FILE = "evaluations.csv"


class Row(NamedTuple):
    """What whole episodes of one task came to."""

    env_frames: int  # behind the weights that played
    learner_updates: int  # behind them
    task: str
    episodes: int
    mean_return: float  # all returns raw
    standard_deviation: float  # of the episodes, not of their mean
    median_return: float
    min_return: float
    max_return: float
    normalised_score: float  # of the mean; NaN where there is no reference
    seconds: float  # that the evaluation took, all tasks together


class EvaluationLog:
    """Writes a run's log; for one thread."""

    def __init__(self, workdir: pathlib.Path):
        """Leaves the file as it is until `resume`."""
        self._path = workdir / FILE
        self._file = _file(workdir)

    @property
    def row_count(self) -> int:
        """Number of rows in the file; see `row_file.RowFile.row_count`."""
        return self._file.row_count

    def check(self) -> None:
        """Checks that most rows are readable; see `row_file.RowFile.check`."""
        self._file.check()

    def resume(self, env_frames: int | None, written: int = 0) -> int:
        """Makes the file, or drops its rows beyond a checkpoint: they will be played again.

        Args:
          env_frames: that the checkpoint had consumed; None without one, when no row stays.
          written: Number of rows that the checkpoint counts, 0 if unknown.

        Returns:
          Env frames behind the last evaluation that stays; 0 without one.

        Raises:
          WorkdirError: If the file cannot be read or written, or most of its rows are unreadable.
        """
        stays = None if env_frames is None else lambda row: row.env_frames <= env_frames
        return max((row.env_frames for row in self._file.keep(stays, written)), default=0)

    def exists(self) -> bool:
        """Whether there is a file, of this process or of one before it."""
        return self._path.exists()

    def add(self, summary: Mapping[str, Any]) -> None:
        """Appends an evaluation; where that fails it is told, and made up for by the next one.

        Args:
          summary: of `continuous_evaluator.ContinuousEvaluator.evaluate`.
        """
        for task, of_task in summary["tasks"].items():
            returns, score = of_task["returns"], of_task["normalised_score"]
            self._file.add(
                Row(
                    summary["env_frames"],
                    summary["learner_updates"],
                    task,
                    len(returns),
                    of_task["mean_return"],
                    of_task["standard_deviation"],
                    float(np.median(returns)),
                    min(returns),
                    max(returns),
                    math.nan if score is None else score,
                    summary["seconds"],
                )
            )
        self._file.flush()


def read(workdir: pathlib.Path) -> list[Row]:
    """The evaluations beside a run, oldest first; see `row_file.RowFile.read` for damage.

    Raises:
      OSError: if the file is there and cannot be read.
    """
    return _file(workdir).read()


def metrics(suite: str, summary: Mapping[str, Any]) -> dict[str, float]:
    """What TensorBoard gets of an evaluation: as `reporting.EpisodeReturns.metrics` of training."""
    values = {
        tensorboard.EVALUATION_RETURN: summary["mean_return"],
        "throughput/evaluation_seconds": summary["seconds"],
    }
    if len(summary["tasks"]) == 1:
        return values
    for task, of_task in summary["tasks"].items():
        values[f"task/{task}/evaluation_mean_return"] = of_task["mean_return"]
    name = f"{reference.kind(suite)}_normalised"
    if f"mean_capped_{name}_score" in summary:
        values[f"episode/evaluation_median_{name}"] = summary[f"{name}_score"]
        values[f"episode/evaluation_mean_capped_{name}"] = summary[f"mean_capped_{name}_score"]
    return values


def _file(workdir: pathlib.Path) -> row_file.RowFile[Row]:
    return row_file.RowFile(workdir / FILE, ",".join(Row._fields), _parse, _render)


def _render(row: Row) -> str:
    cells = (f"{value:.10g}" if isinstance(value, float) else str(value) for value in row)
    return ",".join("" if cell == "nan" else cell for cell in cells)


def _parse(line: str) -> Row:
    frames, updates, task, episodes, mean, deviation, median, least, most, score, seconds = (
        line.split(",")
    )
    return Row(
        row_file.parse_count(frames),
        row_file.parse_count(updates),
        task,
        row_file.parse_count(episodes),
        row_file.parse_number(mean),
        row_file.parse_number(deviation),
        row_file.parse_number(median),
        row_file.parse_number(least),
        row_file.parse_number(most),
        row_file.parse_number(score) if score else math.nan,
        row_file.parse_number(seconds),
    )

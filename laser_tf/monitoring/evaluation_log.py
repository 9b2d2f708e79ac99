"""`evaluations.csv`: periodic evaluations during training, one row for each task of each.

The final evaluation is not in this file but in `evaluation.json`.
"""

import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from laser_tf.monitoring import csv_log
from laser_tf.scores import reference

FILE = "evaluations.csv"
RETURN = "episode/evaluation_mean_return"  # in TensorBoard


class Row(NamedTuple):
    """Results of complete episodes of one task; the fields are the columns of the file."""

    env_frames: int  # of the evaluated weights
    learner_updates: int  # of the evaluated weights
    task: str
    episodes: int
    mean_return: float  # all returns raw
    standard_deviation: float  # of the episodes, not of their mean
    median_return: float
    min_return: float
    max_return: float
    normalised_score: float | None  # of the mean; None without a reference
    seconds: float  # duration of the evaluation of all tasks


class EvaluationLog(csv_log.CsvLog[Row]):
    """The log of a run."""

    def __init__(self, workdir: pathlib.Path):
        super().__init__(workdir / FILE, Row, Row._fields)

    def add_summary(self, summary: Mapping[str, Any]) -> None:
        """Appends the summary of `evaluator.Evaluator.evaluate`."""
        for task, of_task in summary["tasks"].items():
            returns = of_task["returns"]
            self.add(
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
                    of_task["normalised_score"],
                    summary["seconds"],
                )
            )
        self.flush()


def metrics(suite: str, summary: Mapping[str, Any]) -> dict[str, float]:
    """Returns the TensorBoard metrics of an evaluation, see `reporting.EpisodeReturns.metrics`."""
    values = {
        RETURN: summary["mean_return"],
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

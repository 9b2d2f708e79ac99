"""`episodes.csv`: every finished training episode of a run, one row each."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from laser_tf import errors
from laser_tf.monitoring import csv_log

FILE = "episodes.csv"
_COLUMNS = ("env_frames", "task", "return", "length")


class Episodes(NamedTuple):
    """Finished episodes of one task, in the order of their reports."""

    env_frames: np.ndarray  # int64 [E]
    returns: np.ndarray  # float64 [E], raw
    lengths: np.ndarray  # int64 [E], agent steps


class Row(NamedTuple):
    """A finished episode."""

    env_frames: int  # that the learner had consumed when the episode was reported
    task: str
    episode_return: float  # sum of raw rewards
    length: int  # agent steps


class EpisodeLog(csv_log.CsvLog[Row]):
    """The log of a run, in which rows of other tasks are damaged."""

    def __init__(self, workdir: pathlib.Path, tasks: Sequence[str]):
        super().__init__(workdir / FILE, Row, _COLUMNS)
        self._tasks = tuple(tasks)

    def _parse(self, line: str) -> Row:
        row = super()._parse(line)
        if row.task not in self._tasks:
            raise ValueError(f"{row.task} is not a task of the run")
        return row


def read(workdir: pathlib.Path) -> dict[str, Episodes]:
    """Returns the episodes of a run by task; see `csv_log.CsvLog.read`."""
    tasks: dict[str, list[Row]] = {}
    for row in csv_log.CsvLog(workdir / FILE, Row, _COLUMNS).read():
        tasks.setdefault(row.task, []).append(row)
    return {
        task: Episodes(
            np.array([row.env_frames for row in rows], np.int64),
            np.array([row.episode_return for row in rows], np.float64),
            np.array([row.length for row in rows], np.int64),
        )
        for task, rows in tasks.items()
    }


def check(workdir: pathlib.Path, tasks: Mapping[str, Episodes]) -> None:
    """Raises UserError if the result of `read` has no learning curve."""
    if not tasks:
        raise errors.UserError(
            f"{workdir} holds no finished episode ({FILE}). Name a run directory, wait for its "
            "first episode, or train for more env frames."
        )
    check_order(workdir, tasks)


def check_order(workdir: pathlib.Path, tasks: Mapping[str, Episodes]) -> None:
    """Raises UserError if the episodes that `read` returns are not in the order of env frames."""
    if any((np.diff(task.env_frames) < 0).any() for task in tasks.values()):
        raise errors.UserError(
            f"{workdir / FILE} must hold episodes in the order of env frames. Sort its lines."
        )

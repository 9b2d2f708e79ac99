"""`episodes.csv`: every finished training episode of a run, one row each.

Columns: `env_frames`, frames the learner had consumed for the first time when the episode was
reported; `task`, its name; `return`, the sum of raw rewards; `length` in agent steps.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from laser_tf import errors
from laser_tf.environments import episode_statistics
from laser_tf.monitoring import row_file

FILE = "episodes.csv"
_HEADER = "env_frames,task,return,length"


class Episodes(NamedTuple):
    """Finished episodes of one task, in the order of their reports."""

    env_frames: np.ndarray  # int64 [E]
    returns: np.ndarray  # float64 [E], raw
    lengths: np.ndarray  # int64 [E], agent steps


class _Row(NamedTuple):
    env_frames: int
    task: str
    episode_return: float
    length: int


class EpisodeLog:
    """Writes a run's log; episodes come from an actor's thread, the file is the learner's."""

    def __init__(self, workdir: pathlib.Path, tasks: Sequence[str]):
        """Leaves the file as it is until `resume`; `tasks` are the names behind `Episode.task`."""
        self._tasks = tuple(tasks)
        self._file = row_file.RowFile(workdir / FILE, _HEADER, self._parse, _render)

    def _parse(self, line: str) -> _Row:
        row = _parse(line)
        if row.task not in self._tasks:
            raise ValueError(f"{row.task} is not a task of the run")
        return row

    @property
    def row_count(self) -> int:
        """Number of episodes in the file; see `row_file.RowFile.row_count`."""
        return self._file.row_count

    def check(self) -> None:
        """Checks that most rows are readable; see `row_file.RowFile.check`."""
        self._file.check()

    def resume(
        self, env_frames: int | None, newer_than: int = -1, written: int = 0
    ) -> list[episode_statistics.Episode]:
        """Makes the file, or drops its rows beyond a checkpoint: they will be played again.

        Args:
          env_frames: that the checkpoint had consumed; None without one, when no row stays.
          newer_than: env frames; only of what was reported later something is returned.
          written: Number of rows that the checkpoint counts, 0 if unknown.

        Returns:
          What stays, oldest first. Of which environment is not logged: -1.

        Raises:
          WorkdirError: If the file cannot be read or written, or most of its rows are unreadable.
        """
        stays = None if env_frames is None else lambda row: row.env_frames <= env_frames
        rows = self._file.keep(stays, written)
        return [
            episode_statistics.Episode(
                -1, self._tasks.index(row.task), row.episode_return, row.length
            )
            for row in rows
            if row.env_frames > newer_than
        ]

    def add(self, env_frames: int, episode: episode_statistics.Episode) -> None:
        """Takes a finished episode, from any thread; `flush` writes it."""
        task = self._tasks[episode.task]
        self._file.add(_Row(env_frames, task, episode.episode_return, episode.length))

    def flush(self) -> None:
        """Writes what has come since the last call; see `row_file.RowFile.flush`."""
        self._file.flush()


def read(workdir: pathlib.Path) -> dict[str, Episodes]:
    """The episodes of a run by task; empty where there are none yet.

    A last row that is torn, by a crash or by a writer at work, is left out. Other damage is told.

    Raises:
      OSError: if the file is there and cannot be read.
    """
    tasks: dict[str, list[_Row]] = {}
    for row in _file(workdir).read():
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
    """Refuses a run of which there is no curve of returns to show.

    Args:
      workdir: the run's folder.
      tasks: what `read` says of it.

    Raises:
      UserError: if there is no finished episode, or see `check_order`.
    """
    if not tasks:
        raise errors.UserError(
            f"{workdir} holds no finished episode ({FILE}): name the folder of a run, wait for its "
            "first one, or train for more env frames"
        )
    check_order(workdir, tasks)


def check_order(workdir: pathlib.Path, tasks: Mapping[str, Episodes]) -> None:
    """Refuses episodes whose last ones are not those at a log's end; for the arguments see `check`.

    Raises:
      UserError: if some are out of order.
    """
    if any((np.diff(task.env_frames) < 0).any() for task in tasks.values()):
        raise errors.UserError(
            f"{workdir / FILE} has episodes that are not in the order of env frames: sort its "
            "lines by them"
        )


def _file(workdir: pathlib.Path) -> row_file.RowFile[_Row]:
    return row_file.RowFile(workdir / FILE, _HEADER, _parse, _render)


def _render(row: _Row) -> str:
    return f"{row.env_frames},{row.task},{row.episode_return:.10g},{row.length}"


def _parse(line: str) -> _Row:
    env_frames, task, episode_return, length = line.split(",")
    return _Row(
        row_file.parse_count(env_frames),
        task,
        row_file.parse_number(episode_return),
        row_file.parse_count(length),
    )

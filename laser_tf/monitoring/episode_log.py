"""`episodes.csv`: every finished training episode of a run, one row each.

Columns: `env_frames`, frames the learner had consumed for the first time when the episode was
reported; `task`, its name; `return`, the sum of raw rewards; `length` in agent steps.
"""

import logging
import pathlib
import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from laser_tf.environments import episode_statistics
from laser_tf.host import failure_notice, run_folder, whole_files

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
        self._path = workdir / FILE
        self._tasks = tuple(tasks)
        self._lock = threading.Lock()
        self._lines: list[str] = []  # not written yet
        self._notice = failure_notice.FailureNotice(f"{self._path} can be written again")
        self._size = 0  # bytes of the file that are whole rows

    def resume(
        self, env_frames: int | None, newer_than: int = -1
    ) -> list[episode_statistics.Episode]:
        """Makes the file, or drops its rows beyond a checkpoint: they will be played again.

        Args:
          env_frames: that the checkpoint had consumed; None without one, when no row stays.
          newer_than: env frames; only of what was reported later something is returned.

        Returns:
          What stays, oldest first. Of which environment is not logged: -1.

        Raises:
          WorkdirError: if the file cannot be read or written.
        """
        try:
            rows = [] if env_frames is None else _rows(self._path)
            rows = [row for row in rows if row.env_frames <= env_frames and row.task in self._tasks]
            text = "".join(f"{line}\n" for line in (_HEADER, *map(_line, rows)))
            whole_files.write(self._path, text)
        except OSError as error:
            raise run_folder.WorkdirError(
                f"cannot write {self._path}: {error.strerror}; free space, then run again"
            ) from None
        self._size = len(text.encode())
        return [
            episode_statistics.Episode(
                -1, self._tasks.index(row.task), row.episode_return, row.length
            )
            for row in rows
            if row.env_frames > newer_than
        ]

    def add(self, env_frames: int, episode: episode_statistics.Episode) -> None:
        """Takes a finished episode, from any thread; `flush` writes it."""
        row = _Row(env_frames, self._tasks[episode.task], episode.episode_return, episode.length)
        with self._lock:
            self._lines.append(_line(row))

    def flush(self) -> None:
        """Appends what has come since the last call; tells of failures and tries again next time.

        A crash of the process loses what was not flushed.
        """
        with self._lock:
            lines, self._lines = self._lines, []
        if not lines:
            return
        data = "".join(f"{line}\n" for line in lines).encode()
        try:
            with self._path.open("r+b") as file:
                file.seek(self._size)  # over the half row of a failure before
                file.write(data)
            self._size += len(data)
            self._notice.succeeded()
        except OSError as error:
            self._notice.failed(
                f"cannot write {self._path}: {error.strerror}; episodes are kept until it works"
            )
            with self._lock:
                self._lines = lines + self._lines


def read(workdir: pathlib.Path) -> dict[str, Episodes]:
    """The episodes of a run by task; empty where there are none yet.

    A last row that is torn, by a crash or by a writer at work, is left out. Other damage is told.

    Raises:
      OSError: if the file is there and cannot be read.
    """
    tasks: dict[str, list[_Row]] = {}
    for row in _rows(workdir / FILE):
        tasks.setdefault(row.task, []).append(row)
    return {
        task: Episodes(
            np.array([row.env_frames for row in rows], np.int64),
            np.array([row.episode_return for row in rows], np.float64),
            np.array([row.length for row in rows], np.int64),
        )
        for task, rows in tasks.items()
    }


def _line(row: _Row) -> str:
    return f"{row.env_frames},{row.task},{row.episode_return:.10g},{row.length}"


def _rows(path: pathlib.Path) -> list[_Row]:
    if not path.exists():
        return []
    # What stands after the last line's end is torn, even where it reads like a row.
    *lines, _ = path.read_text(errors="replace").split("\n")
    rows = [_parse(line) for line in lines[1:]]
    damaged = rows.count(None)
    if damaged:
        logging.warning("%s: %d damaged rows are left out", path, damaged)
    return [row for row in rows if row]


def _parse(line: str) -> _Row | None:
    try:
        env_frames, task, episode_return, length = line.split(",")
        return _Row(int(env_frames), task, float(episode_return), int(length))
    except ValueError:
        return None

"""Rotation of checkpoints: how they are replaced, and which of them is restored."""

import contextlib
import logging
import pathlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from laser_tf.workdir import atomic

C = TypeVar("C")
R = TypeVar("R")


class DamagedError(ValueError):
    """A checkpoint differs from what was saved. The message states the difference."""


def load_first_usable(checkpoints: Iterable[C], load: Callable[[C], R]) -> R | None:
    """Returns the result of `load` for the first checkpoint without a DamagedError, or None."""
    for checkpoint in checkpoints:
        try:
            return load(checkpoint)
        except DamagedError as error:
            logging.warning("Skipped damaged checkpoint %s: %s", checkpoint, error)
    return None


class CheckpointRotation:
    """Newest, previous, damaged and unfinished checkpoint at a path, each a file or a directory.

    The names of all but the newest checkpoint have a suffix: `_previous`, `_damaged`, `_saving`.
    """

    def __init__(self, path: pathlib.Path):
        self.newest = path
        self._previous, self._damaged, self.unfinished = (
            path.with_stem(f"{path.stem}_{suffix}") for suffix in ("previous", "damaged", "saving")
        )

    @contextlib.contextmanager
    def saving(self) -> Iterator[pathlib.Path]:
        """Yields a path that does not exist, and makes it the newest checkpoint.

        After an exception in the context the newest checkpoint is unchanged. The disk never holds
        more than two complete checkpoints.
        """
        if _exists(self.newest):
            _delete(self._previous)
        with self.temporary() as path:
            yield path
            atomic.sync(path)  # An error, e.g. a full disk, must occur before the first rename.
            if _exists(self.newest):
                self.newest.replace(self._previous)
            atomic.replace(path, self.newest)

    @contextlib.contextmanager
    def temporary(self) -> Iterator[pathlib.Path]:
        """Yields the path of a checkpoint that is deleted at the end of the context."""
        self.newest.parent.mkdir(parents=True, exist_ok=True)
        _delete(self.unfinished)
        try:
            yield self.unfinished
        finally:
            _delete(self.unfinished)

    def restore(self, load: Callable[[pathlib.Path], R]) -> R | None:
        """Returns the result of `load` for the newest usable checkpoint, or None.

        Keeps the last checkpoint for which `load` raises DamagedError.
        """
        _delete(self.unfinished)  # left by a process that was killed
        if not _exists(self.newest) and _exists(self._previous):
            logging.warning("Checkpoint %s is missing: using the previous checkpoint", self.newest)
        return load_first_usable(self._candidates(), load)

    def delete_all(self) -> None:
        """Deletes all checkpoints, so that none is restored later, and logs it."""
        for path in (self.newest, self._previous, self._damaged, self.unfinished):
            if _exists(path):
                logging.info("Deleted %s", path)
            _delete(path)

    def _candidates(self) -> Iterator[pathlib.Path]:
        """Yields the newest checkpoint, then the previous one, which takes its place.

        The caller asks for the next checkpoint only if the last one is damaged.
        """
        for path in (self.newest, self._previous):
            if _exists(path):
                path.replace(self.newest)
                yield self.newest
                _delete(self._damaged)
                self.newest.replace(self._damaged)


def _exists(path: pathlib.Path) -> bool:
    """Returns whether a path is a file or a directory with content."""
    return path.is_file() or (path.is_dir() and any(path.iterdir()))


def _delete(path: pathlib.Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)

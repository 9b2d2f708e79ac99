"""One process at a time works in a folder: two would mix checkpoints and logs."""

import contextlib
import fcntl
import logging
import os
import pathlib
import socket
import time
from typing import NamedTuple

from laser_tf import errors

FILE = "lock"
LEAVING_SECONDS = 180.0  # for a process that is told to end, which may be saving
SAVING_SECONDS = 3_600.0  # the same, where that is a replay, which may be large
# In the environment of a command that is started again elsewhere where its machine fails.
FOLLOWS = "LASER_TF_FOLLOWS"


class InUseError(errors.UserError):
    """Another process works in the folder; the message says which."""


class LostError(errors.UserError):
    """The directory that this process locked is gone or belongs to another process."""


class _Held(NamedTuple):
    descriptor: int  # of the lock file
    folder: int  # descriptor of its directory; an open descriptor keeps the inode from reuse


_held: dict[pathlib.Path, _Held] = {}  # locks of this process, by absolute path


def patience_of_command() -> float:
    """Seconds that a command waits for its folder: its predecessor may be saving itself there."""
    return LEAVING_SECONDS if FOLLOWS in os.environ else 0.0


def hold(path: pathlib.Path, patience_seconds: float = 0.0, flag: str = "--workdir") -> None:
    """Locks a file, which is made, for as long as this process lives.

    Children do not inherit the lock. Where the file system knows no locks, it says so and goes on.

    Args:
      path: of the file, in the folder that is to be one's own.
      patience_seconds: for another process that is ending.
      flag: that names the folder, for the message.

    Raises:
      InUseError: if another process has it for longer than that.
      OSError: if the file cannot be made.
    """
    # Never closed: the system gives a lock up with any of the file's descriptors.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    deadline = time.monotonic() + patience_seconds
    is_told = False
    while not _take(descriptor, path):
        owner = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "unknown"
        if time.monotonic() >= deadline:
            raise InUseError(
                f"another process works in {path.parent} ({owner}): wait for its end or end it, or "
                f"use another {flag}"
            )
        if not is_told:
            logging.info("waiting until another process has left %s (%s)", path.parent, owner)
            is_told = True
        time.sleep(0.2)
    with contextlib.suppress(OSError):  # on a full disk the owner stays unknown
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    _held[path.absolute()] = _Held(descriptor, folder)


def check(folder: pathlib.Path) -> None:
    """Checks that this process still owns a directory. Call before each save.

    A lock file that was deleted is created and locked again.

    Args:
      folder: The directory; one that this process did not lock passes.

    Raises:
      LostError: If the directory was deleted, renamed or replaced, or another process locked it.
    """
    for path, held in list(_held.items()):
        if path.parent == folder.absolute():
            _check(path, held)


def _check(path: pathlib.Path, held: _Held) -> None:
    if not _is_same(path.parent, held.folder):
        raise LostError(_describe_loss(path.parent, held.folder))
    if _is_same(path, held.descriptor):
        return
    try:
        hold(path)  # succeeds only if no other process locked the new file
    except InUseError as error:
        raise LostError(
            f"{path} was deleted while this process used {path.parent}, and {error}. Nothing more "
            "is saved here."
        ) from None
    except OSError as error:
        raise LostError(f"{path} was deleted and cannot be created: {error.strerror}") from None
    for descriptor in held:
        os.close(descriptor)
    logging.warning("%s was deleted; locked it again. Keep this file while a run is active", path)


def _is_same(path: pathlib.Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _describe_loss(folder: pathlib.Path, descriptor: int) -> str:
    now = str(pathlib.Path(f"/proc/self/fd/{descriptor}").readlink())
    lost = "Nothing was saved since the last checkpoint"
    if now.endswith(" (deleted)") or not os.fstat(descriptor).st_nlink:
        return (
            f"{folder} was deleted while this process used it. {lost}: restore the directory from "
            "a backup, or start again."
        )
    return (
        f"{folder} was renamed to {now} while this process used it. {lost}: rename the directory "
        f"back, or resume with {now}."
    )


def _take(descriptor: int, path: pathlib.Path) -> bool:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # POSIX allows both
        return False
    except OSError as error:
        logging.warning("%s cannot be locked (%s): do not use its folder twice", path, error)
    return True

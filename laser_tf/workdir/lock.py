"""Lock of a directory: two processes in one directory would mix their checkpoints and logs."""

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
EXIT_TIMEOUT_SECONDS = 180.0  # for a process that is exiting, which may be saving weights
SAVE_TIMEOUT_SECONDS = 3_600.0  # for a process that may be saving a large replay
# Environment variable of a command that is restarted elsewhere after its machine failed.
FOLLOWS_VARIABLE = "LASER_TF_FOLLOWS"
_POLL_PERIOD_SECONDS = 0.2


class InUseError(errors.UserError):
    """Another process uses the directory. The message names the process."""


class LostError(errors.UserError):
    """The directory that this process locked is gone or belongs to another process."""


class _Held(NamedTuple):
    descriptor: int  # of the lock file
    directory: int  # descriptor of its directory; an open descriptor keeps the inode from reuse


_held: dict[pathlib.Path, _Held] = {}  # locks of this process, by absolute path


def command_timeout() -> float:
    """Returns how many seconds a command waits for the lock: its predecessor may be saving."""
    return EXIT_TIMEOUT_SECONDS if FOLLOWS_VARIABLE in os.environ else 0.0


def acquire(path: pathlib.Path, patience_seconds: float = 0.0, flag: str = "--workdir") -> None:
    """Creates a file and locks it until this process ends.

    Child processes do not inherit the lock. If the file system does not support locks, a warning
    is logged.

    Args:
      path: Lock file in the directory.
      patience_seconds: Timeout for another process that holds the lock.
      flag: Command-line flag that names the directory, for the message.

    Raises:
      InUseError: If another process still holds the lock after the timeout.
      OSError: If the file cannot be created.
    """
    # Never closed: closing any descriptor of the file releases the lock.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    deadline = time.monotonic() + patience_seconds
    is_logged = False
    while not _try_lock(descriptor, path):
        owner = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "unknown"
        if time.monotonic() >= deadline:
            raise InUseError(
                f"another process uses {path.parent} ({owner}): wait for its end or end it, or "
                f"use another {flag}"
            )
        if not is_logged:
            logging.info("Waiting for another process to leave %s (%s)", path.parent, owner)
            is_logged = True
        time.sleep(_POLL_PERIOD_SECONDS)
    with contextlib.suppress(OSError):  # On a full disk the owner stays unknown.
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    _held[path.absolute()] = _Held(descriptor, directory)


def check(directory: pathlib.Path) -> None:
    """Checks that this process still owns a directory. Call before each save.

    A lock file that was deleted is created and locked again.

    Args:
      directory: Directory to check. A directory that this process did not lock passes.

    Raises:
      LostError: If the directory was deleted, renamed or replaced, or another process locked it.
    """
    for path, held in list(_held.items()):
        if path.parent == directory.absolute():
            _check(path, held)


def _check(path: pathlib.Path, held: _Held) -> None:
    if not _is_same(path.parent, held.directory):
        raise LostError(_describe_loss(path.parent, held.directory))
    if _is_same(path, held.descriptor):
        return
    try:
        acquire(path)  # Succeeds only if no other process locked the new file.
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


def _describe_loss(directory: pathlib.Path, descriptor: int) -> str:
    now = str(pathlib.Path(f"/proc/self/fd/{descriptor}").readlink())
    lost = "Nothing was saved since the last checkpoint"
    if now.endswith(" (deleted)") or not os.fstat(descriptor).st_nlink:
        return (
            f"{directory} was deleted while this process used it. {lost}: restore the directory "
            "from a backup, or start again."
        )
    return (
        f"{directory} was renamed to {now} while this process used it. {lost}: rename the "
        f"directory back, or resume with {now}."
    )


def _try_lock(descriptor: int, path: pathlib.Path) -> bool:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # POSIX allows both.
        return False
    except OSError as error:
        logging.warning(
            "Cannot lock %s (%s). Do not use its directory for two runs at once", path, error
        )
    return True

"""Lock of a directory: two processes in one directory would mix their checkpoints and logs."""

import contextlib
import fcntl
import logging
import os
import pathlib
import socket
import time

from laser_tf import errors

FILE = "lock"
EXIT_TIMEOUT_SECONDS = 180.0  # for a process that is exiting, which may be saving weights
SAVE_TIMEOUT_SECONDS = 3_600.0  # for a process that may be saving a large replay
# Set for commands whose predecessor may still run: on a lost machine, or of a killed search.
WAIT_VARIABLE = "LASER_TF_WAIT_FOR_LOCK"
_POLL_PERIOD_SECONDS = 0.2

# Lock file -> descriptors of the file and its directory. An open descriptor keeps the inode from
# reuse, and closing any descriptor of the file would release its lock.
_held: dict[pathlib.Path, tuple[int, int]] = {}


class InUseError(errors.UserError):
    """Another process, which the message names, uses the directory."""


class LostError(errors.UserError):
    """The directory that this process locked is gone."""


def command_timeout() -> float:
    """Returns the seconds that a command waits for the lock: its predecessor may be saving."""
    return EXIT_TIMEOUT_SECONDS if WAIT_VARIABLE in os.environ else 0.0


def acquire(path: pathlib.Path, patience_seconds: float = 0.0, flag: str = "--workdir") -> None:
    """Creates a file and locks it until `release` or the end of this process.

    Child processes do not inherit the lock. Logs a warning if the file system has no locks.

    Raises:
      InUseError: If another process still holds the lock after `patience_seconds`. The message
        names the directory by its `flag`.
    """
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
    _held[path.absolute()] = descriptor, os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)


def release(directory: pathlib.Path) -> None:
    """Unlocks a directory, unless this process has not locked it."""
    for descriptor in _held.pop((directory / FILE).absolute(), ()):
        os.close(descriptor)


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


def check(directory: pathlib.Path) -> None:
    """Raises LostError if a directory that this process locked was deleted, renamed or replaced.

    Call before each save.
    """
    for path, (_, parent) in _held.items():
        if path.parent == directory.absolute() and not _is_same(directory, parent):
            now = pathlib.Path(f"/proc/self/fd/{parent}").readlink()
            raise LostError(
                f"{directory} was deleted, renamed or replaced while this process used it, and is "
                f"now {now}. Nothing was saved since the last checkpoint. Rename it back, or "
                "restore it from a backup, then run the same command."
            )


def _is_same(path: pathlib.Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except (FileNotFoundError, NotADirectoryError):
        return False

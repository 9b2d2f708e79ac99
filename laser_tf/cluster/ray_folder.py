"""Folders of the Rays that commands start for themselves."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator

from laser_tf.host import interruption

_PREFIX = "laser_tf_ray_"
_LOCK = "in_use"  # in a folder; locked as long as the command runs
_END_SECONDS = 10.0  # for killed processes to disappear


@contextlib.contextmanager
def opened(parent: str | os.PathLike[str]) -> Iterator[str]:
    """Creates a folder and removes it at the end, with the folders of killed commands.

    After an error the folder stays, because it holds Ray's logs. After `Stopped` it does not, and
    the processes that Ray has started with it end first.

    Args:
      parent: The directory of all such folders.

    Yields:
      The path of the folder.
    """
    _remove_abandoned(pathlib.Path(parent))
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
    descriptor = _lock(folder)
    try:
        yield folder
    except interruption.Stopped:
        end_processes(folder)
        shutil.rmtree(folder, ignore_errors=True)
        raise
    except BaseException:
        with contextlib.suppress(OSError):
            (pathlib.Path(folder) / _LOCK).unlink()  # a folder without it is never removed
        raise
    else:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


def end_processes(folder: str) -> None:
    """Kills the processes of Ray that have an option with this folder, and their descendants.

    Ray itself ends the processes that it has started only once its start is complete.
    """
    deadline = time.monotonic() + _END_SECONDS
    while (processes := _processes(folder)) and time.monotonic() < deadline:
        _send(processes, signal.SIGSTOP)  # so that none starts another process
        _send(processes | _descendants(processes), signal.SIGKILL)
        time.sleep(0.05)


def _send(processes: set[int], signal_number: int) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal_number)


def _processes(folder: str) -> set[int]:
    found = set()
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # of a process that has ended in the meantime
            arguments = path.read_bytes().split(b"\0")
            # A command of the user's, such as tail, names the folder without an option.
            if any(part.startswith(b"--") and os.fsencode(folder) in part for part in arguments):
                found.add(int(path.parent.name))
    return found


def _descendants(processes: set[int]) -> set[int]:
    """Returns the descendants of some processes: Ray's agents overwrite their command lines."""
    parents = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name, in parentheses, may contain spaces; the state and the parent follow it.
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found: set[int] = set()
    level = processes
    while level := {process for process, parent in parents.items() if parent in level} - found:
        found |= level
    return found


def _lock(folder: str) -> int:
    """Creates the locked file of a folder; returns its descriptor, which holds the lock."""
    # Renamed once it is locked: another command never finds the file unlocked.
    unlocked = pathlib.Path(folder) / f"{_LOCK}.new"
    descriptor = os.open(unlocked, os.O_RDWR | os.O_CREAT, 0o600)
    with contextlib.suppress(OSError):  # a file system without locks keeps the folder
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unlocked.rename(unlocked.with_name(_LOCK))
    return descriptor


def _remove_abandoned(parent: pathlib.Path) -> None:
    """Removes this user's folders whose command was killed and whose processes have ended."""
    for folder in parent.glob(f"{_PREFIX}*"):
        # Of other commands that remove it at the same time, one is as good as another.
        with contextlib.suppress(OSError):
            if folder.lstat().st_uid == os.getuid() and _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: pathlib.Path) -> bool:
    descriptor = os.open(folder / _LOCK, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return not _processes(str(folder))

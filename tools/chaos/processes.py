"""The descendants of this process, including those whose own parent has died."""

import contextlib
import ctypes
import os
import pathlib
import subprocess
import threading
import time
from collections.abc import Sequence

import psutil

_PR_SET_CHILD_SUBREAPER = 36
_lock = threading.Lock()
_started: set[int] = set()  # Processes of `start`, whose caller waits for them.


def adopt_orphans() -> None:
    """Makes this process the parent of orphaned descendants, and reaps them when they end.

    Ray regards a process that its parent has not reaped as alive.
    """
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError("prctl: orphans cannot be adopted")
    threading.Thread(target=_reap, name="reaper", daemon=True).start()


def _reap() -> None:
    while True:
        with _lock:
            for child in psutil.Process().children():
                if child.pid not in _started:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(child.pid, os.WNOHANG)
        time.sleep(0.2)


def start(command: Sequence[str], log: pathlib.Path) -> subprocess.Popen:
    """Starts a command that appends its output to `log`; the caller waits for its end."""
    with _lock, log.open("ab") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
        _started.add(process.pid)
    return process


def run(command: Sequence[str], log: pathlib.Path) -> int:
    """Runs a command like `start`; returns its exit code."""
    return start(command, log).wait()


def find(of: int | None = None) -> list[psutil.Process]:
    """Returns the living descendants of this process, or of the process with the id `of`."""
    found = []
    for process in psutil.Process(of).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def send(number: int, signal_number: int) -> None:
    """Sends a signal to a process, unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(number, signal_number)


def kill_all() -> None:
    """Kills all descendants at once, as a power cut does."""
    while found := find():
        for end in (psutil.Process.suspend, psutil.Process.kill):  # None detects another's death.
            for process in found:
                with contextlib.suppress(psutil.NoSuchProcess):
                    end(process)
        time.sleep(0.1)

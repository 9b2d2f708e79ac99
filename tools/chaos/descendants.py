"""The processes that come of this one, also where those between have died."""

import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import threading
import time
from collections.abc import Sequence

_PR_SET_CHILD_SUBREAPER = 36


class Process:
    """What /proc says of a process."""

    def __init__(self, number: int, parent: int, state: str, command: str):
        self.number, self.parent, self.state, self.command = number, parent, state, command


def adopt_orphans() -> None:
    """Makes this process the parent of descendants whose own parent has died, and buries them.

    Ray takes a process that nobody has waited for for one that lives.
    """
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError("prctl: orphans cannot be adopted")
    threading.Thread(target=_bury, name="undertaker", daemon=True).start()


_lock = threading.Lock()
_started: set[int] = set()  # by `start`, whose caller waits for them


def start(command: Sequence[str], log: pathlib.Path) -> subprocess.Popen:
    """Starts a command, whose output is appended to `log` and whose end the caller waits for."""
    with _lock, log.open("ab") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
        _started.add(process.pid)
    return process


def run(command: Sequence[str], log: pathlib.Path) -> int:
    """The same, and waits; returns the exit code."""
    return start(command, log).wait()


def _bury() -> None:
    children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children")  # of the main thread
    while True:
        with _lock:
            for number in map(int, children.read_text().split()):
                if number not in _started:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(number, os.WNOHANG)
        time.sleep(0.2)


def _read_all() -> list[Process]:
    processes = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            state, parent = (folder / "stat").read_text().rpartition(") ")[2].split()[:2]
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            processes.append(Process(int(folder.name), int(parent), state, command))
    return processes


def find(*, of: int | None = None) -> list[Process]:
    """All that live, of this process or another."""
    children: dict[int, list[Process]] = {}
    for process in _read_all():
        children.setdefault(process.parent, []).append(process)
    found, ahead = [], [of or os.getpid()]
    while ahead:
        known = [process for process in children.get(ahead.pop(), []) if process.state != "Z"]
        found += known
        ahead += [process.number for process in known]
    return found


def send(number: int, signal_number: int) -> None:
    """Sends a signal to a process, unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(number, signal_number)


def kill_all() -> None:
    """Ends all descendants at once, as a power cut does."""
    while processes := find():
        # None of them gets time to see another one's death.
        for signal_number in (signal.SIGSTOP, signal.SIGKILL):
            for process in processes:
                send(process.number, signal_number)
        time.sleep(0.1)

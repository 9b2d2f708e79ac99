"""Waiting for processes, free ports, signal handlers and file sizes."""

import contextlib
import pathlib
import resource
import signal
import socket
import time
import unittest
from collections.abc import Callable, Iterable, Iterator
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def wait_until(condition: Callable[[], Any], seconds: float = 60.0, process: Any = None) -> Any:
    """Waits until a condition is true; returns its value.

    Args:
      condition: Called every 0.05 s.
      seconds: Time limit.
      process: Process with a method `poll` that must not end in the meantime.

    Raises:
      TimeoutError: If the condition is not true in time.
    """
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError("the condition is not true")
        if process and process.poll() is not None:
            raise AssertionError(f"the process has ended: {process}")
        time.sleep(0.05)
    return value


def is_running(pid: int) -> bool:
    """Returns whether a process exists and is no zombie."""
    with contextlib.suppress(FileNotFoundError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    return False


def wait_for_end(pids: Iterable[int]) -> None:
    """Waits until no process of `pids` is running."""
    wait_until(lambda: not any(map(is_running, pids)), 30.0)


def free_port() -> int:
    """Returns a port that no process uses."""
    with socket.create_server(("", 0)) as probe:
        return probe.getsockname()[1]


def keep_handlers(test: unittest.TestCase) -> None:
    """Restores the handlers of `STOP_SIGNALS` after a test."""
    for number in STOP_SIGNALS:
        test.addCleanup(signal.signal, number, signal.getsignal(number))


@contextlib.contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Fails writes beyond a file size, also in processes that start in the meantime."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

"""Processes that are kept alive: the agents of a sweep and its server."""

import ctypes
import logging
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence

TRY_AGAIN = 75  # exit code of a process that saved its state and wants to be started again
_PR_SET_PDEATHSIG = 1
_LIBRARY = ctypes.CDLL(None)  # loaded here: a forked child should take no locks
_DELAY_SECONDS = 2.0  # before a process is started again
_YOUNG_SECONDS = 60.0  # a process that ends before that has not recovered
_MAX_FAILURES = 4  # in a row, each time young


class Process:
    """One command, started again whenever it ends with an error."""

    def __init__(
        self,
        name: str,
        module: str,
        arguments: Sequence[str],
        log: pathlib.Path,
        environment: Mapping[str, str],
    ):
        """Starts `python -m module arguments`.

        Args:
          name: in messages.
          module: of the command.
          arguments: of the command.
          log: where its output is appended.
          environment: variables beside this process's own.
        """
        self.name = name
        self.has_failed = False  # for good
        self.restarts = 0
        self._command = [sys.executable, "-m", module, *arguments]
        self._log = log
        self._environment = {**os.environ, **environment}
        self._failures = 0
        self._start_at: float | None = None
        self._start()

    def _start(self) -> None:
        self._start_at = None
        self._started = time.monotonic()
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                # A group of its own: Ctrl-C reaches the sweep alone, which then ends all in order.
                start_new_session=True,
                preexec_fn=end_with_parent,
            )

    @property
    def is_over(self) -> bool:
        """Whether it is done, or has failed for good."""
        return self.has_failed or self._process.poll() == 0

    @property
    def is_running(self) -> bool:
        """Whether there is a process now."""
        return self._process.poll() is None

    def watch(self) -> bool:
        """Starts the command again where it ended with an error; returns whether it just ended."""
        if self._start_at is not None:
            if time.monotonic() >= self._start_at:
                self.restarts += 1
                self._start()
            return False
        code = self._process.poll()
        if code is None or code == 0 or self.has_failed:
            return False
        self._note_failure(code)
        return True

    def _note_failure(self, code: int) -> None:
        young = time.monotonic() - self._started < _YOUNG_SECONDS
        self._failures = self._failures + 1 if young and code != TRY_AGAIN else 0
        if self._failures >= _MAX_FAILURES:
            self.has_failed = True
            logging.warning(
                "%s ended %d times at once (%s): it is given up, the others go on; see %s",
                self.name, self._failures, _describe(code), self._log,
            )  # fmt: skip
            return
        self._start_at = time.monotonic() + _DELAY_SECONDS
        if code != TRY_AGAIN:
            logging.warning(
                "%s has ended (%s) and is started again; see %s",
                self.name, _describe(code), self._log,
            )  # fmt: skip

    def stop(self, signal_number: int) -> None:
        """Asks the process to end, which is not started again."""
        if self._start_at is not None:
            self._start_at = None
        elif self._process.poll() is None:
            self._process.send_signal(signal_number)

    def kill(self) -> None:
        """Ends the process now, if it has not ended, and waits until it has."""
        if self.is_running:
            logging.warning("%s does not end: it is killed", self.name)
            self._process.kill()
            self._process.wait()


def end(
    processes: Collection[Process],
    signal_number: int,
    seconds: float,
    should_hurry: Callable[[], bool],
) -> None:
    """Asks processes to end, waits for all together, and kills those that take too long.

    Args:
      processes: some, which are not started again.
      signal_number: that asks them.
      seconds: for all of them.
      should_hurry: whether to wait no longer.
    """
    for process in processes:
        process.stop(signal_number)
    deadline = time.monotonic() + seconds
    while any(process.is_running for process in processes):
        if time.monotonic() >= deadline or should_hurry():
            break
        time.sleep(0.1)
    for process in processes:
        process.kill()


def end_with_parent() -> None:
    """Has the system end this process, cleanly, when the one that started it has ended.

    For a child, before it becomes its command.
    """
    _LIBRARY.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _describe(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

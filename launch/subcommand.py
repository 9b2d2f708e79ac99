"""Runs commands of launch from another command, one after the other or several at once."""

import contextlib
import logging
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from laser_tf.host import interruption
from laser_tf.workdir import lock
from launch import command_line

_POLL_SECONDS = 0.1
_ERROR = "error: "  # prefix of an error of `command_line`


class Command(NamedTuple):
    """A command of launch."""

    module: str  # e.g. "train"
    arguments: tuple[str, ...]
    title: str = ""  # logged at the start
    log: pathlib.Path | None = None  # file for its output; None: the terminal

    @property
    def python_arguments(self) -> tuple[str, ...]:
        """Arguments of `python -m`."""
        return (f"launch.{self.module}", *self.arguments)


class Process(Protocol):
    """A running command: a `subprocess.Popen`, or a command on another machine."""

    def poll(self) -> int | None:
        """Returns the exit code; None while the command runs."""

    def send_signal(self, signal_number: int) -> None:
        """Sends a signal."""


def start_here(command: Command) -> subprocess.Popen:
    """Starts a command on this machine; raises UsageError if its log cannot be written."""
    with contextlib.ExitStack() as stack:
        output = None
        if command.log:
            try:
                command.log.parent.mkdir(parents=True, exist_ok=True)
                output = stack.enter_context(command.log.open("ab"))
            except OSError as error:
                raise command_line.UsageError(
                    f"cannot write {command.log}: {error.strerror}; choose another --workdir or "
                    "free space"
                ) from None
        return subprocess.Popen(
            [sys.executable, "-m", *command.python_arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # The command of a killed parent may still save the same run.
            env={**os.environ, lock.WAIT_VARIABLE: "1"},
            # Its own process group, so that it gets each Ctrl-C once, from this process.
            start_new_session=True,
            preexec_fn=interruption.end_with_parent,
        )


def run_all(
    commands: Iterable[Command],
    at_once: int = 1,
    start: Callable[[Command], Process] = start_here,
) -> None:
    """Runs commands and forwards signals that end this process; after a signal it does not return.

    Each command is requested when it can start. At most `at_once` run at the same time; several
    need a log each.

    Raises:
      UsageError: If a command fails. No further command starts, the others run to their end.
    """
    waiting, failures = iter(commands), []
    running: list[tuple[Command, Process]] = []
    received = interruption.Interruption()
    num_forwarded = 0  # signals
    while True:
        while len(running) < at_once and not (failures or received.stop_requested):
            command = next(waiting, None)
            if command is None:
                break
            if command.title:
                logging.info("%s", command.title)
            running.append((command, start(command)))
        if not running:
            break
        time.sleep(_POLL_SECONDS)
        # One signal for each poll, because the second of two may be lost.
        new_signals = received.signals[num_forwarded : num_forwarded + 1]
        num_forwarded += len(new_signals)
        for child in list(running):
            command, process = child
            for signal_number in new_signals:
                process.send_signal(signal_number)
            code = process.poll()
            if code is not None:
                running.remove(child)
            if code:
                failures.append(describe_failure(command, code))
    if received.stop_requested:
        logging.info("Stopped all commands; the same command resumes them")
        interruption.end_by(received.signal_number)
    interruption.restore_default_handlers()
    if failures:
        raise command_line.UsageError(f"{'; '.join(failures)}; the same command resumes")


def describe_failure(command: Command, code: int) -> str:
    """Describes an exit code with the error in the last line of the log, if any."""
    # A command that got no machine of a cluster has no log.
    log = command.log
    lines = log.read_text(errors="replace").splitlines() if log and log.exists() else []
    is_error = lines and lines[-1].startswith(_ERROR)
    error = f"{lines[-1].removeprefix(_ERROR)}; " if is_error else ""
    return f"launch.{command.module} ended with {code}: {error}see {log or 'above'}"

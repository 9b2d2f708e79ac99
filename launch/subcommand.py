"""Other commands of launch's, run from a command: one after the other, or several at once.

Here, or wherever a `Start` starts them.
"""

import collections
import logging
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from laser_tf.host import interruption
from launch import command_line

_POLL_SECONDS = 0.1
_ERROR = "error: "  # begins what `command_line` tells the user


class Command(NamedTuple):
    """What is to be run."""

    module: str  # e.g. "train"
    arguments: tuple[str, ...]  # its flags
    title: str = ""  # told when it starts
    log: pathlib.Path | None = None  # takes what it prints; None: the terminal does

    @property
    def python_arguments(self) -> tuple[str, ...]:
        """What follows `python -m`."""
        return (f"launch.{self.module}", *self.arguments)


class Process(Protocol):
    """A command that runs; `subprocess.Popen` is one."""

    def poll(self) -> int | None:
        """The exit code; None while it runs."""

    def send_signal(self, signal_number: int) -> None:
        """Has the command get a signal."""


Start = Callable[[Command], Process]


def start_here(command: Command) -> subprocess.Popen:
    """Starts a command on this machine.

    Raises:
      UsageError: if its log cannot be written.
    """
    output = None
    if command.log:
        try:
            command.log.parent.mkdir(parents=True, exist_ok=True)
            output = command.log.open("ab")
        except OSError as error:
            raise command_line.UsageError(
                f"cannot write {command.log}: {error.strerror}; choose another --workdir or free "
                "space"
            ) from None
    process = subprocess.Popen(
        [sys.executable, "-m", *command.python_arguments],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        # A group of its own: it gets each Ctrl-C once, from here, and has the time to save all.
        start_new_session=True,
        preexec_fn=interruption.end_with_parent,
    )
    if output:
        output.close()
    return process


class _Child:
    """A command that runs, or waits for room."""

    def __init__(self, command: Command, start: Start, interrupted: interruption.Interruption):
        self.command = command
        if command.title:
            logging.info("%s", command.title)
        self._process = start(command)
        self.forward = interruption.SignalForwarder(interrupted, self._process.send_signal).forward

    def failure(self) -> str | None:
        """What went wrong; "" for nothing, None while it runs."""
        code = self._process.poll()
        if not code:
            return code if code is None else ""
        said = _last_error(self.command.log)
        where = self.command.log or "above"
        return f"launch.{self.command.module} ended with {code}: {said}see {where}"


def _last_error(log: pathlib.Path | None) -> str:
    """What a command has refused in its log's last line, with a semicolon; "" for nothing."""
    # There is none of a command that got no room on a cluster.
    lines = log.read_text(errors="replace").splitlines() if log and log.exists() else []
    is_told = lines and lines[-1].startswith(_ERROR)
    return f"{lines[-1].removeprefix(_ERROR)}; " if is_told else ""


def run(module: str, *arguments: str) -> None:
    """Runs `python -m launch.<module>`; as `run_all`.

    Args:
      module: e.g. "train".
      *arguments: its flags.
    """
    run_all([Command(module, arguments)])


def run_all(commands: Iterable[Command], at_once: int = 1, start: Start = start_here) -> None:
    """Runs commands, and forwards what asks to end; then it does not return.

    When one fails no other is started, and those that run go on to their end.

    Args:
      commands: in the order in which they start.
      at_once: how many run at the same time; each then needs a log of its own.
      start: starts one of them.

    Raises:
      UsageError: if a command fails.
    """
    waiting, running, failures = collections.deque(commands), [], []
    interrupted = interruption.Interruption()
    while True:
        while waiting and len(running) < at_once and not (failures or interrupted.stop):
            running.append(_Child(waiting.popleft(), start, interrupted))
        if not running:
            break
        time.sleep(_POLL_SECONDS)
        for child in list(running):
            child.forward()
            failure = child.failure()
            if failure is not None:
                running.remove(child)
                failures += [failure] if failure else []
    if interrupted.stop:
        logging.info("stopped; the same command goes on")
        interruption.end_by(interrupted.signal_number)
    interruption.restore_default_handlers()
    if failures:
        raise command_line.UsageError(f"{'; '.join(failures)}; the same command goes on")

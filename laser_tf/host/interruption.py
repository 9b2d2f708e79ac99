"""Ctrl-C, SIGTERM and SIGHUP: loops that end in order, and what the shell is told then.

Standard library only: a command begins with `before_imports`.
"""

import contextlib
import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from typing import NoReturn

from laser_tf.host import terminal

_LIBRARY = ctypes.CDLL(None)
_SIGACTION_BYTES = 1024  # more than C's structure has anywhere


def before_imports() -> None:
    """Has Ctrl-C end the process at once, without a traceback, while there is nothing to save.

    KeyboardInterrupt would also get lost: a callback of a library's that it hits only prints it.
    `launch/__init__.py` has done the same before, where Python has looked for the command there.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    terminal.outlive()


def take_over(handler: Callable[[int, object], None]) -> None:
    """Has a handler called for each signal that asks the process to end."""
    for signal_number in _signals():
        signal.signal(signal_number, handler)


def give_back() -> None:
    """From now on such a signal ends the process at once."""
    for signal_number in _signals():
        signal.signal(signal_number, signal.SIG_DFL)


@contextlib.contextmanager
def keeping_sigterm() -> Iterator[None]:
    """Has SIGTERM do afterwards what it did before, whatever a library has made of it within.

    By way of C: Python lets the main thread alone do so, and Ray calls a role's work in another.
    """
    kept = ctypes.create_string_buffer(_SIGACTION_BYTES)
    _LIBRARY.sigaction(signal.SIGTERM, None, kept)
    try:
        yield
    finally:
        _LIBRARY.sigaction(signal.SIGTERM, kept, None)


def _signals() -> tuple[int, ...]:
    # Under nohup a closed terminal is to be survived.
    survives_hangup = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM) + (() if survives_hangup else (signal.SIGHUP,))


def end_by(signal_number: int) -> NoReturn:
    """Ends the process, which has saved all, as the signal would have done at once.

    The shell then sees 128 + the signal's number (130 for Ctrl-C) and ends a loop of commands. Of a
    process that exits with such a code of its own accord bash takes it that Ctrl-C was handled: its
    loop goes on with the next command.
    """
    terminal.flush()
    signal.signal(signal_number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal_number])
    os.kill(os.getpid(), signal_number)
    os._exit(128 + signal_number)  # the first process of a container is not ended by signals


class Stopped(BaseException):
    """A signal has come where there is nothing to save."""

    def __init__(self, signal_number: int):
        """Takes the signal's number."""
        super().__init__(signal_number)
        self.signal_number = signal_number


class Interruption:
    """What the process was asked to do.

    No events: a handler would wait for ever for a lock of theirs that the thread beneath it holds.
    """

    def __init__(self):
        """Takes the signals over."""
        self.signals: list[int] = []  # in the order of their coming
        self.hurry = False  # do not even wait for what is being saved
        take_over(self._note)

    @property
    def stop(self) -> bool:
        """Whether to end in order."""
        return bool(self.signals)

    @property
    def signal_number(self) -> int | None:
        """The first that came."""
        return self.signals[0] if self.signals else None

    @contextlib.contextmanager
    def raising(self) -> Iterator[None]:
        """Around work that has nothing to save: a signal raises `Stopped`, the next one kills."""
        if self.signal_number is not None:
            raise Stopped(self.signal_number)
        take_over(self._raise)
        try:
            yield
        finally:
            if not self.stop:
                take_over(self._note)

    def _raise(self, signal_number: int, frame: object) -> None:
        give_back()
        self._note(signal_number, frame)
        raise Stopped(signal_number)

    def _note(self, signal_number: int, _: object) -> None:
        # A second Ctrl-C is meant. SIGTERM comes several times from a parent that is killed, as
        # Linux sends it with each of the parent's threads (see `kept_command.end_with_parent`), and
        # SIGHUP from the shell and from the terminal.
        if self.stop and signal_number == signal.SIGINT:
            self.hurry = True
        self.signals.append(signal_number)


class Forwarding:
    """Hands the signals that come on to another process."""

    def __init__(self, interrupted: Interruption, send: Callable[[int], None]):
        """Sends nothing yet.

        Args:
          interrupted: what this process was asked to do.
          send: sends a signal to the other one.
        """
        self._interrupted = interrupted
        self._send = send
        self._sent = 0

    def forward(self) -> None:
        """Sends the first signal that was not sent yet: of two at once the second may be lost."""
        if self._sent < len(self._interrupted.signals):
            self._send(self._interrupted.signals[self._sent])
            self._sent += 1

"""Ctrl-C, SIGTERM and SIGHUP: handlers that let loops stop and save, and exit statuses."""

import contextlib
import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from typing import NoReturn

from laser_tf.host import log_messages

_LIBRARY = ctypes.CDLL(None)  # Loaded here: a forked child must take no locks.
_PR_SET_PDEATHSIG = 1
_SIGACTION_BYTES = 1024  # more than C's structure has anywhere


def before_imports() -> None:
    """Makes Ctrl-C end the process at once, without a traceback, while there is nothing to save.

    A library's callback would print KeyboardInterrupt and lose it.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    log_messages.ignore_closed_terminal()


def install_handlers(handler: Callable[[int, object], None]) -> None:
    """Installs a handler of the signals that ask the process to end."""
    for signal_number in _signals():
        signal.signal(signal_number, handler)


def restore_default_handlers() -> None:
    """Makes the signals that ask the process to end do so at once."""
    for signal_number in _signals():
        signal.signal(signal_number, signal.SIG_DFL)


@contextlib.contextmanager
def keeping_sigterm() -> Iterator[None]:
    """Restores the handler of SIGTERM after a library may have replaced it.

    Uses C's `sigaction`, because Ray runs a role outside of the main thread.
    """
    kept = ctypes.create_string_buffer(_SIGACTION_BYTES)
    _LIBRARY.sigaction(signal.SIGTERM, None, kept)
    try:
        yield
    finally:
        _LIBRARY.sigaction(signal.SIGTERM, kept, None)


def end_with_parent() -> None:
    """Makes the system end this child process by SIGTERM when its parent ends."""
    _LIBRARY.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _signals() -> tuple[int, ...]:
    # Under nohup the process survives a closed terminal.
    survives_hangup = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM) + (() if survives_hangup else (signal.SIGHUP,))


def end_by(signal_number: int) -> NoReturn:
    """Ends the process by the signal, after everything is saved.

    If a process exits with 128 + the signal's number itself, bash continues a loop of commands.
    """
    log_messages.flush()
    signal.signal(signal_number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal_number])
    os.kill(os.getpid(), signal_number)
    os._exit(128 + signal_number)  # Signals do not end the first process of a container.


class Stopped(BaseException):
    """The process received a signal while it had nothing to save."""

    def __init__(self, signal_number: int):
        super().__init__(signal_number)
        self.signal_number = signal_number


class Interruption:
    """The signals that have asked the process to end. Creation installs the handlers.

    Without `threading.Event`, because a handler would block on a lock that its own thread holds.
    """

    def __init__(self):
        self.signals: list[int] = []  # In the order in which they arrived.
        self.kill_requested = False  # Whether to end without waiting for saves.
        install_handlers(self._note)

    @property
    def stop_requested(self) -> bool:
        """True if a signal has arrived: save and stop."""
        return bool(self.signals)

    @property
    def signal_number(self) -> int | None:
        """The first signal, if any."""
        return self.signals[0] if self.signals else None

    @contextlib.contextmanager
    def raising(self) -> Iterator[None]:
        """Makes a signal raise `Stopped` while there is nothing to save; the next signal kills."""
        if self.signal_number is not None:
            raise Stopped(self.signal_number)
        install_handlers(self._raise)
        try:
            yield
        finally:
            if not self.stop_requested:
                install_handlers(self._note)

    def _raise(self, signal_number: int, frame: object) -> None:
        restore_default_handlers()
        self._note(signal_number, frame)
        raise Stopped(signal_number)

    def _note(self, signal_number: int, _: object) -> None:
        # Only a second Ctrl-C is deliberate: Linux sends SIGTERM for each thread of a killed parent
        # (see `end_with_parent`), and the shell and the terminal both send SIGHUP.
        if self.stop_requested and signal_number == signal.SIGINT:
            self.kill_requested = True
        self.signals.append(signal_number)

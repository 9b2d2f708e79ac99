"""Messages of a process: log format, repeated failures, and a terminal that may be closed."""

import contextlib
import errno
import io
import logging
import os
import sys
from typing import Any, TextIO


def show(message_format: str = "%(message)s") -> None:
    """Logs messages of this project (root logger), and warnings of libraries, to standard error."""
    logging.basicConfig(
        level=logging.INFO, format=message_format, datefmt="%F %T", stream=sys.stderr, force=True
    )
    for handler in logging.getLogger().handlers:
        handler.addFilter(lambda r: r.name == "root" or r.levelno >= logging.WARNING)
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)


class FailureNotice:
    """Logs the first of several failures in a row, and `on_recovery` after them."""

    def __init__(self, on_recovery: str):
        self._on_recovery = on_recovery
        self._is_failing = False

    def failed(self, message: str) -> None:
        """Logs a warning unless the last attempt failed, too."""
        if not self._is_failing:
            logging.warning("%s", message)
        self._is_failing = True

    def succeeded(self) -> None:
        """Logs the recovery if the last attempt failed."""
        if self._is_failing:
            logging.info("%s", self._on_recovery)
        self._is_failing = False


class _Terminal(io.FileIO):
    """Ignores output once the terminal is closed."""

    def write(self, data: Any) -> int:
        """Writes bytes; returns their number."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return len(data)


def ignore_closed_terminal() -> None:
    """Ignores output once the terminal is closed, so that a run can save itself or continue.

    Also ignores output to a stream that is closed at the start, as after `>&-`. Files and pipes
    stay as they are: the writer must detect a full disk or a reader that has gone.
    """
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None:  # Otherwise, the next file would get the descriptor.
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        if stream is None or stream.isatty():
            setattr(sys, name, terminal_stream(descriptor))


def terminal_stream(descriptor: int) -> TextIO:
    """Returns a line-buffered text stream to a file descriptor that may be a terminal's."""
    raw = io.BufferedWriter(_Terminal(descriptor, "w", closefd=False))
    return io.TextIOWrapper(raw, errors="backslashreplace", line_buffering=True)


def flush() -> None:
    """Flushes the standard streams."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # a full disk
            stream.flush()

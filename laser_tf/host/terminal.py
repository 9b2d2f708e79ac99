"""The terminal, which may be closed while a command runs. Standard library only."""

import contextlib
import errno
import io
import sys
from typing import Any, TextIO


class _Terminal(io.FileIO):
    """Takes everything, also when nobody sees it any more."""

    def write(self, data: Any) -> int:
        """Writes bytes to the terminal while it is there; returns the number of bytes."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return len(data)


def outlive() -> None:
    """Has output to a terminal vanish, instead of raising OSError, once the terminal is closed.

    A run must save itself then, and under nohup or a daemon it goes on. Files and pipes stay as
    they are: of a full disk, or of a reader that has gone, the writer has to know.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and stream.isatty():
            setattr(sys, name, stream_to(stream.fileno()))


def stream_to(descriptor: int) -> TextIO:
    """A stream of text, line by line, to a file descriptor that may be a terminal's."""
    raw = _Terminal(descriptor, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), errors="backslashreplace", line_buffering=True, write_through=False
    )


def flush() -> None:
    """Sends what the standard streams still hold."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # a full disk
            stream.flush()

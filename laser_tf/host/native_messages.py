"""Sends the output of C++ libraries, which would disturb the progress display, to a file."""

import contextlib
import faulthandler
import logging
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from laser_tf import errors
from laser_tf.host import log_messages

FILE = "native.log"  # In a run directory.
_STANDARD_ERROR = 2


@contextlib.contextmanager
def diverted(path: pathlib.Path) -> Iterator[None]:
    """Sends the output of C++ libraries to a file; Python's messages still reach the terminal.

    Streams that do not write to descriptor 2, such as those of a notebook, stay as they are.

    Raises:
      UserError: If the file cannot be written.
    """
    if sys.stderr:
        sys.stderr.flush()
    try:
        log = path.open("ab")
    except OSError as error:
        raise errors.UserError(
            f"cannot write {path}: {error.strerror}. Make its directory writable, or move the file "
            "away."
        ) from None
    terminal = os.dup(_STANDARD_ERROR)
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(os.close, terminal)
        cleanup.callback(os.dup2, terminal, _STANDARD_ERROR)
        with log:
            os.dup2(log.fileno(), _STANDARD_ERROR)
        if _descriptor(sys.stderr) == _STANDARD_ERROR:
            cleanup.enter_context(_python_messages(log_messages.terminal_stream(terminal)))
        yield


@contextlib.contextmanager
def _python_messages(shown: TextIO) -> Iterator[None]:
    """Sends Python's messages for standard error to another stream."""
    before = sys.stderr
    handlers = [
        handler
        for handler in logging.getLogger().handlers
        if isinstance(handler, logging.StreamHandler)
        and _descriptor(handler.stream) == _STANDARD_ERROR
    ]
    reports_crashes = faulthandler.is_enabled()

    def use(stream: TextIO) -> None:
        for handler in handlers:
            handler.setStream(stream)
        if reports_crashes:
            faulthandler.enable(stream)

    use(shown)
    try:
        with contextlib.redirect_stderr(shown):
            yield
    finally:
        use(before)
        shown.flush()


def _descriptor(stream: Any) -> int | None:
    """Returns the file descriptor of a stream; None if it has none."""
    try:
        return stream.fileno()
    except (AttributeError, OSError, ValueError):  # ValueError: the stream is closed.
        return None

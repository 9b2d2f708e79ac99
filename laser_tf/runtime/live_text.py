"""Text that is redrawn in place on a terminal, and printed now and then elsewhere."""

import logging
import sys
import time
from typing import TextIO

from rich import console, live, text

PLAIN_SECONDS = 10.0


class LiveText:
    """A context manager that shows the newest of some text.

    On a terminal it is redrawn in place, and lines that are logged meanwhile appear above it.
    Elsewhere (a pipe, a file, CI) it is printed plainly every few seconds.
    """

    def __init__(self, stream: TextIO | None = None):
        """Shows nothing yet; `stream` is where to write, by default standard output."""
        stream = stream or sys.stdout
        # Asked here: CI services set FORCE_COLOR, by which rich would take a pipe for a terminal.
        self._console = console.Console(file=stream, force_terminal=stream.isatty())
        self._live = live.Live(console=self._console, auto_refresh=False)
        self._is_live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._log_streams: list[tuple[logging.StreamHandler, TextIO]] = []
        self._next_plain = 0.0
        self._unprinted = ""

    def __enter__(self) -> "LiveText":
        if self._is_live:
            self._live.start()
            self._take_over_logging()
        return self

    def __exit__(self, *_) -> None:
        if self._is_live:
            for handler, stream in self._log_streams:
                handler.setStream(stream)
            self._live.stop()
        elif self._unprinted:
            self._print()

    def _take_over_logging(self) -> None:
        # Handlers keep the stream they were made with, so they bypass the `sys.stderr` that rich
        # puts in place, and the next redraw would wipe out what they wrote.
        for handler in logging.getLogger().handlers:
            stream = getattr(handler, "stream", None)
            if stream and stream.isatty():
                handler.setStream(sys.stderr)
                self._log_streams.append((handler, stream))

    def show(self, content: str) -> None:
        """Shows one or more lines in place of those before."""
        if self._is_live:
            self._live.update(text.Text(content), refresh=True)
            return
        self._unprinted = content
        if time.monotonic() >= self._next_plain:
            self._print()

    def _print(self) -> None:
        self._next_plain = time.monotonic() + PLAIN_SECONDS
        try:
            # Not the console: it would break the lines at an assumed width.
            print(self._unprinted, file=self._console.file, flush=True)
        except OSError as error:  # a full disk, or who read it has gone; no reason to stop
            logging.warning("the progress cannot be shown: %s", error)
        self._unprinted = ""

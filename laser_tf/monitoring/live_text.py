"""What is redrawn in place on a terminal, and printed as plain text now and then elsewhere."""

import logging
import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

from rich import columns, console, live, progress_bar, table, text

PLAIN_SECONDS = 10.0


def bar(share: float, *words: str) -> table.Table:
    """A bar, filled to `share` of the line's width (0 to 1), with words behind it."""
    grid = table.Table.grid(padding=(0, 2, 0, 0), expand=True)
    grid.add_column(ratio=1)
    for _ in words:
        grid.add_column(no_wrap=True, justify="right")
    grid.add_row(progress_bar.ProgressBar(total=1.0, completed=share), *words)
    return grid


def title(words: str) -> text.Text:
    """One line, cut where the terminal is narrower."""
    return text.Text(words, style="bold", no_wrap=True, overflow="ellipsis")


def items(words: Sequence[str]) -> columns.Columns:
    """Several short texts, as many beside each other as the terminal has room for."""
    return columns.Columns([text.Text(item) for item in words], padding=(0, 3))


class LiveText:
    """A context manager that shows the newest state of something.

    On a terminal it is redrawn in place, and lines that are logged meanwhile appear above it.
    Elsewhere (a pipe, a file, CI) its plain text is printed every few seconds.
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
        handlers: list[Any] = logging.getLogger().handlers
        for handler in handlers:
            stream = getattr(handler, "stream", None)
            if stream and stream.isatty():
                handler.setStream(sys.stderr)
                self._log_streams.append((handler, stream))

    def show(self, plain: str, drawn: console.RenderableType) -> None:
        """Shows something in place of what was shown before.

        Args:
          plain: one or more lines, where they are printed.
          drawn: the same for a terminal.
        """
        if self._is_live:
            self._live.update(drawn, refresh=True)
            return
        self._unprinted = plain
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

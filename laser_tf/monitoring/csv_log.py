"""CSV logs of a run: they grow by complete rows and continue when the run is resumed."""

import collections
import contextlib
import logging
import math
import os
import pathlib
import typing
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from laser_tf import config_checks
from laser_tf.host import log_messages
from laser_tf.workdir import atomic, run_directory

Row = TypeVar("Row", bound=tuple)


class CsvLog(Generic[Row]):
    """A CSV file of named tuples, whose first element is the number of env frames.

    Integers are counts, floats are finite, and an optional float without a value is an empty cell.
    Any thread may call `add`; one thread calls the other methods.
    """

    def __init__(self, path: pathlib.Path, row_class: type[Row], columns: Sequence[str]):
        self._path = path
        self._row_class = row_class
        self._types = list(typing.get_type_hints(row_class).values())
        self._header = ",".join(columns)
        self._unwritten: collections.deque[Row] = collections.deque()
        self._notice = log_messages.FailureNotice(on_recovery=f"{path} can be written again")

    def exists(self) -> bool:
        """Returns whether the file exists."""
        return self._path.exists()

    def read(self) -> list[Row]:
        """Returns all rows; none if the file is missing.

        Omits an incomplete last line, which a crash or a writer at work leaves. Logs other damage.
        Raises OSError if the file cannot be read.
        """
        rows, unreadable = self._load()
        if unreadable:
            logging.warning("Omitted %d damaged rows of %s", len(unreadable), self._path)
        return rows

    def _load(self) -> tuple[list[Row], list[str]]:
        """Returns the rows and the unreadable lines."""
        if not self._path.exists():
            return [], []
        # Text after the last line end is incomplete, even if it reads like a row.
        *lines, _ = self._path.read_text(encoding="utf-8-sig", errors="replace").split("\n")
        if lines and lines[0] == self._header:
            del lines[0]
        elif lines and sorted(lines[0].split(",")) == sorted(self._header.split(",")):
            return [], lines  # The columns are in another order.
        rows: list[Row] = []
        unreadable = []
        for line in lines:
            try:
                rows.append(self._parse(line))
            except ValueError:
                unreadable.append(line)
        return rows, unreadable

    def _parse(self, line: str) -> Row:
        """Raises ValueError if the line is damaged."""
        cells = zip(line.split(","), self._types, strict=True)
        return self._row_class(*(_parse_cell(text, expected) for text, expected in cells))

    def check(self) -> tuple[list[Row], int]:
        """Returns the rows and the number of unreadable lines.

        Raises WorkdirError if the file cannot be read, or most of its lines are unreadable.
        """
        try:
            rows, unreadable = self._load()
        except OSError as error:
            raise self._failure("read", error) from None
        if len(unreadable) > len(rows):
            raise run_directory.WorkdirError(
                f"{self._path} must hold comma-separated rows of {self._header} in UTF-8, got "
                f"{len(unreadable):,} unreadable lines and {len(rows):,} rows, e.g. "
                f"{unreadable[-1][:60]!r}. Restore the file from a backup, or move it elsewhere to "
                "resume without its rows"
            )
        return rows, len(unreadable)

    def _failure(self, action: str, error: OSError) -> run_directory.WorkdirError:
        return run_directory.WorkdirError(
            f"cannot {action} {self._path}: {error.strerror}. Fix this, then run again"
        )

    def resume(self, env_frames: int | None) -> list[Row]:
        """Opens the file for a run: creates it, or drops rows beyond a checkpoint.

        The run repeats the dropped rows. Logs unreadable lines, and copies a file with such lines
        to one with the suffix `.damaged`. Returns the remaining rows, oldest first; without
        `env_frames` there are none. Raises WorkdirError if the file cannot be written; also see
        `check`.
        """
        rows, unreadable = ([], 0) if env_frames is None else self.check()
        rows = [row for row in rows if row[0] <= env_frames]
        try:
            if unreadable:
                self._copy_damaged(unreadable)
            atomic.write(self._path, f"{self._header}\n{self._render(rows)}")
        except OSError as error:
            raise self._failure("write", error) from None
        return rows

    def _copy_damaged(self, unreadable: int) -> None:
        names = (f"{self._path.name}.damaged{number}" for number in ("", *range(2, 1_000)))
        copy = next(path for path in map(self._path.with_name, names) if not path.exists())
        atomic.write(copy, self._path.read_bytes())
        logging.warning("Copied %s with %d unreadable lines to %s", self._path, unreadable, copy)

    def _render(self, rows: Sequence[Row]) -> str:
        return "".join(",".join(map(_render_cell, row, self._types)) + "\n" for row in rows)

    def add(self, row: Row) -> None:
        """Stores a row for the next `flush`."""
        self._unwritten.append(row)

    def flush(self) -> None:
        """Appends the rows since the last call; logs a failure once and tries again next time."""
        rows = [self._unwritten.popleft() for _ in range(len(self._unwritten))]
        if not rows:
            return
        try:
            append(self._path, self._render(rows).encode(), start=f"{self._header}\n".encode())
        except OSError as error:
            self._unwritten.extendleft(reversed(rows))
            self._notice.failed(
                f"Cannot write {self._path}: {error.strerror}; its rows are kept until it works"
            )
        else:
            self._notice.succeeded()


def append(path: pathlib.Path, content: bytes, start: bytes) -> None:
    """Appends to a file, or to `start` in a new or empty file; an OSError leaves it unchanged."""
    size = path.stat().st_size if path.exists() else 0
    try:
        with path.open("ab") as file:
            file.write(content if size else start + content)
    except OSError:
        with contextlib.suppress(OSError):
            os.truncate(path, size) if size else path.unlink()
        raise


def _parse_cell(text: str, expected: Any) -> Any:
    if expected is str:
        return text
    if not text and expected not in (int, float):
        return None
    number = int(text) if expected is int else float(text)
    is_valid = 0 <= number <= config_checks.MAX_INT64 if expected is int else math.isfinite(number)
    if not is_valid:
        raise ValueError(f"{text} is out of range")
    return number


def _render_cell(value: Any, expected: Any) -> str:
    if value is None:
        return ""
    return str(value) if expected in (int, str) else f"{value:.10g}"

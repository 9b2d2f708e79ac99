"""CSV files that grow by whole rows while a run goes on, and go on with it when it is resumed."""

import logging
import math
import os
import pathlib
import threading
from collections.abc import Callable
from typing import BinaryIO, Generic, TypeVar

from laser_tf import errors
from laser_tf.host import failure_notice
from laser_tf.workdir import atomic, run_directory

Row = TypeVar("Row")
_MAX_COUNT = 2**63 - 1  # of int64


def parse_count(text: str) -> int:
    """Returns an integer from 0 to 2**63 - 1; raises ValueError for any other text."""
    count = int(text)
    if not 0 <= count <= _MAX_COUNT:
        raise ValueError(f"{count} is not between 0 and {_MAX_COUNT}")
    return count


def parse_number(text: str) -> float:
    """Returns a finite number; raises ValueError for any other text."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not finite")
    return number


class RowFile(Generic[Row]):
    """One file; rows may come from any thread, all else is one thread's."""

    def __init__(
        self,
        path: pathlib.Path,
        header: str,
        parse: Callable[[str], Row],
        render: Callable[[Row], str],
    ):
        """Leaves the file as it is.

        Args:
          path: of the file, which need not be there.
          header: its first line.
          parse: makes a row of a line; raises ValueError for a damaged one.
          render: makes a line of a row.
        """
        self._path = path
        self._header = header
        self._parse = parse
        self._render = render
        self._lock = threading.Lock()
        self._lines: list[str] = []  # not written yet
        self._notice = failure_notice.FailureNotice(f"{path} can be written again")
        self._size = 0  # bytes of the file that are whole rows
        self._count = 0  # rows of the file
        self._is_torn = False  # the file may end with a part of a row, after a failed write

    @property
    def row_count(self) -> int:
        """Number of rows in the file, as far as this object has kept or written them."""
        return self._count

    def read(self) -> list[Row]:
        """All rows; none where there is no file.

        A last row that is torn, by a crash or by a writer at work, is left out. Other damage is
        told.

        Raises:
          OSError: if the file is there and cannot be read.
        """
        rows, unreadable = self._load()
        if unreadable:
            logging.warning("%s: %d damaged rows are left out", self._path, len(unreadable))
        return rows

    def _load(self) -> tuple[list[Row], list[str]]:
        """Returns the rows and the unreadable lines."""
        if not self._path.exists():
            return [], []
        # What stands after the last line's end is torn, even where it reads like a row.
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

    def check(self) -> None:
        """Checks that most rows are readable; writes nothing.

        Raises:
          WorkdirError: If the file cannot be read, or most of its rows are unreadable.
        """
        try:
            self._load_readable()
        except OSError as error:
            raise self._failure("read", error) from None

    def _load_readable(self) -> tuple[list[Row], int]:
        """Returns the rows and the number of unreadable lines; raises where most are unreadable."""
        rows, unreadable = self._load()
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
            f"cannot {action} {self._path}: {error.strerror}; {errors.file_remedy(error)}, then "
            "run again"
        )

    def keep(self, stays: Callable[[Row], bool] | None, written: int = 0) -> list[Row]:
        """Makes the file, or drops some of its rows, before others are added.

        Logs unreadable and missing rows, and first copies a file that loses any. The copy has the
        suffix `.damaged`.

        Args:
          stays: whether a row does; None: none stays, and what was there is not read.
          written: Number of rows that the run had written of those that stay.

        Returns:
          What stays.

        Raises:
          WorkdirError: If the file cannot be read or written, or most of its rows are unreadable.
        """
        try:
            rows, unreadable = self._load_readable() if stays else ([], 0)
            rows = [row for row in rows if stays and stays(row)]
            text = "".join(f"{line}\n" for line in (self._header, *map(self._render, rows)))
            self._preserve(unreadable, max(0, written - len(rows)), written, text.encode())
            atomic.write(self._path, text)
        except OSError as error:
            raise self._failure("write", error) from None
        self._size, self._count = len(text.encode()), len(rows)
        return rows

    def _preserve(self, unreadable: int, missing: int, written: int, content: bytes) -> None:
        """Logs lost rows; copies the file if it differs from its new content."""
        losses = []
        if unreadable:
            losses.append(f"unreadable lines: {unreadable:,}")
        if missing:
            losses.append(f"missing rows: {missing:,} of {written:,} in the checkpoint's count")
        if not losses:
            return
        if self._path.exists() and self._path.read_bytes() != content:
            copy = _free_path(self._path)
            atomic.write(copy, self._path.read_bytes())
            losses.append(f"copied the file to {copy}")
        logging.warning("%s: %s", self._path, "; ".join(losses))

    def add(self, row: Row) -> None:
        """Takes a row, from any thread; `flush` writes it."""
        line = self._render(row)
        with self._lock:
            self._lines.append(line)

    def flush(self) -> None:
        """Appends what has come since the last call; tells of failures and tries again next time.

        A crash of the process loses what was not flushed.
        """
        with self._lock:
            lines, self._lines = self._lines, []
        if not lines:
            return
        data = "".join(f"{line}\n" for line in lines).encode()
        try:
            if not self._path.exists():
                self._create()
            with self._path.open("r+b") as file:
                self._seek_end(file)
                file.write(data)
            self._size += len(data)
            self._count += len(lines)
            self._is_torn = False
            self._notice.succeeded()
        except OSError as error:
            self._is_torn = True
            self._notice.failed(
                f"cannot write {self._path}: {error.strerror}; its rows are kept until it works"
            )
            with self._lock:
                self._lines = lines + self._lines

    def _seek_end(self, file: BinaryIO) -> None:
        """Moves to where rows are appended: over the torn row of a failed write."""
        size = file.seek(0, os.SEEK_END)
        if size != self._size and not self._is_torn:
            logging.warning(
                "%s was changed by another program while the run used it: appending to the file "
                "as it is",
                self._path,
            )
            file.seek(max(0, size - 1))
            size += 0 if file.read(1) in (b"\n", b"") else file.write(b"\n")
            self._size = size
        file.seek(self._size)

    def _create(self) -> None:
        """Writes the header alone, since the file was deleted."""
        header = f"{self._header}\n"
        atomic.write(self._path, header)
        if self._size:
            logging.warning(
                "%s was deleted while the run used it: created it again without its earlier rows",
                self._path,
            )
        self._size, self._count = len(header.encode()), 0


def _free_path(path: pathlib.Path) -> pathlib.Path:
    """Returns the first name with the suffix `.damaged`, `.damaged2`, ... that is not in use."""
    copy, number = path.with_name(f"{path.name}.damaged"), 1
    while copy.exists():
        number += 1
        copy = path.with_name(f"{path.name}.damaged{number}")
    return copy

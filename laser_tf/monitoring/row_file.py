"""CSV files that grow by whole rows while a run goes on, and go on with it when it is resumed."""

import logging
import math
import pathlib
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from laser_tf import errors
from laser_tf.host import failure_notice, run_folder, whole_files

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

    def read(self) -> list[Row]:
        """All rows; none where there is no file.

        A last row that is torn, by a crash or by a writer at work, is left out. Other damage is
        told.

        Raises:
          OSError: if the file is there and cannot be read.
        """
        if not self._path.exists():
            return []
        # What stands after the last line's end is torn, even where it reads like a row.
        *lines, _ = self._path.read_text(errors="replace").split("\n")
        rows = [row for line in lines[1:] for row in self._parsed(line)]
        damaged = len(lines[1:]) - len(rows)
        if damaged:
            logging.warning("%s: %d damaged rows are left out", self._path, damaged)
        return rows

    def _parsed(self, line: str) -> list[Row]:
        try:
            return [self._parse(line)]
        except ValueError:
            return []

    def keep(self, stays: Callable[[Row], bool] | None) -> list[Row]:
        """Makes the file, or drops some of its rows, before others are added.

        Args:
          stays: whether a row does; None: none stays, and what was there is not read.

        Returns:
          What stays.

        Raises:
          WorkdirError: if the file cannot be read or written.
        """
        try:
            rows = [row for row in self.read() if stays(row)] if stays else []
            text = "".join(f"{line}\n" for line in (self._header, *map(self._render, rows)))
            whole_files.write(self._path, text)
        except OSError as error:
            raise run_folder.WorkdirError(
                f"cannot write {self._path}: {error.strerror}; {errors.file_remedy(error)}, then "
                "run again"
            ) from None
        self._size = len(text.encode())
        return rows

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
                file.seek(self._size)  # over the half row of a failure before
                file.write(data)
            self._size += len(data)
            self._notice.succeeded()
        except OSError as error:
            self._notice.failed(
                f"cannot write {self._path}: {error.strerror}; its rows are kept until it works"
            )
            with self._lock:
                self._lines = lines + self._lines

    def _create(self) -> None:
        """Writes the header alone, since the file was deleted."""
        header = f"{self._header}\n"
        whole_files.write(self._path, header)
        if self._size:
            logging.warning(
                "%s was deleted while the run used it: created it again without its earlier rows",
                self._path,
            )
        self._size = len(header.encode())

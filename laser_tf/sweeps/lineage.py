"""The record of a population: who copied whom, when, and went on with which hyper-parameters."""

import csv
import dataclasses
import io
import logging
import math
import os
import pathlib
from collections.abc import Sequence

from laser_tf import errors

FILE = "population/lineage.csv"  # in the folder of a sweep
COLUMNS = ("env_frames", "member", "parent", "fitness")  # then one for each tuned hyper-parameter


@dataclasses.dataclass(frozen=True)
class Record:
    """One decision about one member; a member's first record is its start and has no parent."""

    env_frames: int  # of the member, before action repeat
    member: str
    parent: str | None  # whose weights it went on from; None: its own
    fitness: float  # of the member before the decision; NaN: unknown
    hyperparameters: dict[str, float]  # the tuned ones, that it went on with


class Lineage:
    """A CSV file of records, one a row, that outlives the process which writes it.

    A crash can tear the last row only. It is dropped then: its decision was never announced, since
    records are written first. Not for several threads or processes at once.
    """

    def __init__(self, path: pathlib.Path, tuned: Sequence[str]):
        """Opens or creates the file, and its folder, and reads what it holds.

        Args:
          path: of the file.
          tuned: names of the hyper-parameters that change.

        Raises:
          ValueError: if the file is damaged before its last row or records other hyper-parameters.
          OSError: if it cannot be read or written.
        """
        self._path = path
        self._columns = [*COLUMNS, *tuned]
        path.parent.mkdir(parents=True, exist_ok=True)
        self._drop_torn_row()
        self.records = self._read()

    def append(self, record: Record) -> None:
        """Writes one row, at once."""
        self._drop_torn_row()  # left by an earlier call that found the disk full
        values = [record.hyperparameters[name] for name in self._columns[len(COLUMNS) :]]
        fitness = record.fitness if math.isfinite(record.fitness) else ""
        self._write([record.env_frames, record.member, record.parent or "", fitness, *values])
        self.records.append(record)

    def _write(self, row: Sequence[object]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(row)
        with self._path.open("a", encoding="utf-8", newline="") as file:
            file.write(text.getvalue())

    def _drop_torn_row(self) -> None:
        content = self._path.read_bytes() if self._path.exists() else b""
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            logging.warning("%s ends in a torn row, which is dropped", self._path)
            os.truncate(self._path, whole)

    def _read(self) -> list[Record]:
        if not self._path.exists() or not self._path.stat().st_size:
            self._write(self._columns)
            return []
        with self._path.open(encoding="utf-8", errors="replace", newline="") as file:
            header = next(csv.reader(file.readlines()[:1]))
        if header != self._columns:
            raise errors.ConfigError(
                f"{self._path} has the columns {', '.join(header)}, not "
                f"{', '.join(self._columns)}: use another folder, or tune the same hyper-parameters"
            )
        return read(self._path)


def read(path: pathlib.Path) -> list[Record]:
    """The records of a file, which may be growing; none where there is no file.

    Raises:
      ValueError: if it is damaged before its last row, which may be torn.
    """
    content = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    lines = content[: content.rfind("\n") + 1].splitlines()
    columns = next(csv.reader(lines[:1]), [])
    return [_parse(path, columns, number, line) for number, line in enumerate(lines[1:], start=2)]


def _parse(path: pathlib.Path, columns: Sequence[str], number: int, line: str) -> Record:
    try:
        row = dict(zip(columns, next(csv.reader([line], strict=True)), strict=True))
        values = {name: float(row[name]) for name in columns[len(COLUMNS) :]}
        if not (row["member"] and all(0 < value < math.inf for value in values.values())):
            raise ValueError("no member, or a hyper-parameter out of range")
        return Record(
            env_frames=int(row["env_frames"]),
            member=row["member"],
            parent=row["parent"] or None,
            fitness=float(row["fitness"] or "nan"),
            hyperparameters=values,
        )
    except (ValueError, KeyError, StopIteration, csv.Error):
        raise errors.ConfigError(
            f"line {number} of {path} is damaged: {line[:200]!r}; delete the line, or "
            "restore the file from a backup"
        ) from None

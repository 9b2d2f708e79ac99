"""The record of a population: one row for each decision about a member."""

import csv
import dataclasses
import io
import math
import pathlib
from collections.abc import Sequence

from laser_tf import errors
from laser_tf.workdir import atomic

FILE = "population/lineage.csv"  # In the directory of a sweep.
COLUMNS = ("env_frames", "member", "parent", "fitness")  # Then one for each tuned hyper-parameter.


@dataclasses.dataclass(frozen=True)
class Record:
    """A decision about a member; the first record of a member is its start and has no parent."""

    env_frames: int  # That the member has learned from.
    member: str
    parent: str | None  # Member whose weights it copied; None: it kept its own.
    fitness: float  # Of the member before the decision; NaN: unknown.
    hyperparameters: dict[str, float]  # Tuned hyper-parameters after the decision.


def read(path: pathlib.Path, tuned: Sequence[str] = ()) -> list[Record]:
    """Returns the records of a file; [] if the file is missing.

    Raises:
      ConfigError: If the file is damaged, or has other hyper-parameters than `tuned`, if given.
      OSError: If the file cannot be read.
    """
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    lines = text.splitlines()
    columns = next(csv.reader(lines[:1]), [])
    records = [_parse(path, columns, i + 1, lines[i]) for i in range(1, len(lines))]
    expected = [*COLUMNS, *tuned]
    if columns and tuned and columns != expected:
        raise errors.ConfigError(
            f"{path} must have the columns {', '.join(expected)}, got {', '.join(columns)}. Use "
            "another --workdir, or tune the same hyper-parameters."
        )
    return records


def write(path: pathlib.Path, records: Sequence[Record]) -> None:
    """Replaces the file atomically by one with these records, at least one.

    Raises:
      OSError: If the file cannot be written; it is unchanged.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    tuned = list(records[0].hyperparameters)
    writer.writerow([*COLUMNS, *tuned])
    for record in records:
        fitness = record.fitness if math.isfinite(record.fitness) else ""
        values = [record.hyperparameters[name] for name in tuned]
        writer.writerow([record.env_frames, record.member, record.parent or "", fitness, *values])
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(path, text.getvalue())


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
            f"Line {number} of {path} is damaged: {line[:200]!r}. Delete the line, or restore the "
            "file from a backup."
        ) from None

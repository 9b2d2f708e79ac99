"""What came of faults: a table."""

import csv
import dataclasses
import pathlib
import statistics
from collections.abc import Mapping, Sequence

_COLUMNS = (
    "fault",
    "times",
    "recovered_median_seconds",
    "recovered_max_seconds",
    "lost_updates_max",
    "lost_unrolls",
    "duplicated_unrolls",
)


@dataclasses.dataclass
class Outcome:
    """Of one fault."""

    fault: str
    begun: float  # time since the epoch
    seconds: float | None = None  # from its end until all went on; None: it never did
    lost_updates: float = 0.0  # learned, but not saved: an estimate
    lost_unrolls: float = 0.0
    duplicated_unrolls: float = 0.0


def attribute(
    outcomes: Sequence[Outcome], steps: Mapping[str, Sequence[tuple[float, float]]]
) -> None:
    """Charges each fault what was counted from its begin to the next one's.

    Args:
      outcomes: in the order of their begin.
      steps: "lost_unrolls" and "duplicated_unrolls" -> (time, how many were counted then).
    """
    for name, counted in steps.items():
        for time, count in counted:
            before = [outcome for outcome in outcomes if outcome.begun <= time]
            if before:
                setattr(before[-1], name, getattr(before[-1], name) + count)


def rows(outcomes: Sequence[Outcome]) -> list[dict[str, str]]:
    """A row a kind of fault."""
    table = []
    for fault in sorted({outcome.fault for outcome in outcomes}):
        same = [outcome for outcome in outcomes if outcome.fault == fault]
        seconds = [outcome.seconds for outcome in same if outcome.seconds is not None]
        values = (
            fault,
            len(same),
            f"{statistics.median(seconds):.1f}" if seconds else "",
            f"{max(seconds):.1f}" if len(seconds) == len(same) else "never",
            f"{max(outcome.lost_updates for outcome in same):.0f}",
            f"{sum(outcome.lost_unrolls for outcome in same):.0f}",
            f"{sum(outcome.duplicated_unrolls for outcome in same):.0f}",
        )
        table.append(dict(zip(_COLUMNS, map(str, values), strict=True)))
    return table


def write(path: pathlib.Path, table: Sequence[Mapping[str, str]]) -> None:
    """Writes rows as CSV."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, _COLUMNS)
        writer.writeheader()
        writer.writerows(table)


def markdown(table: Sequence[Mapping[str, str]]) -> str:
    """The same for a page."""
    lines = [" | ".join(name.replace("_", " ") for name in _COLUMNS), "|".join("-" * len(_COLUMNS))]
    lines += [" | ".join(row[name] for name in _COLUMNS) for row in table]
    return "\n".join(f"| {line} |" for line in lines)

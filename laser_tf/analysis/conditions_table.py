"""Conditions in numbers: the best and the median agent of a sweep, and how many learned nothing."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from laser_tf.analysis import panels, sweep_results

COLUMNS = ("best_agent", "median_agent", "at_or_below_random")
_MEASURES: tuple[Callable[[Sequence[float]], float], ...] = (
    max,
    np.median,
    lambda scores: sum(score <= 0 for score in scores),  # normalised: random play is 0
)


class Range(NamedTuple):
    """One measure of a condition's sweeps, each replica a value."""

    mean: float
    low: float
    high: float


def ranges(protocol: sweep_results.Protocol, condition: sweep_results.Condition) -> list[Range]:
    """In the order of `COLUMNS`; without the last one where scores are not normalised.

    NaN where no agent of any replica has a score; those without are left out of the others.
    """
    measures = _MEASURES if protocol.is_normalised else _MEASURES[:-1]
    of_replicas = _scores(condition)
    if not of_replicas:
        return [Range(np.nan, np.nan, np.nan)] * len(measures)
    values = [[float(measure(scores)) for scores in of_replicas] for measure in measures]
    return [Range(float(np.mean(of_one)), min(of_one), max(of_one)) for of_one in values]


def replicas(condition: sweep_results.Condition) -> int:
    """How many a condition's numbers are of."""
    return len(_scores(condition))


def _scores(condition: sweep_results.Condition) -> list[list[float]]:
    return [replica.scores for replica in condition.replicas if replica.scores]


def header() -> list[str]:
    """Columns of a CSV after the label."""
    ends = ("", *(f"_{name}" for name in Range._fields[1:]))
    return ["replicas", *(column + end for column in COLUMNS for end in ends)]


def row(protocol: sweep_results.Protocol, condition: sweep_results.Condition) -> list[str]:
    """Cells below `header`; empty for what is missing. Replicas without any score do not count."""
    numbers = [value for of_one in ranges(protocol, condition) for value in of_one]
    missing = len(COLUMNS) * len(Range._fields) - len(numbers)
    return [str(replicas(condition)), *panels.cells(numbers), *[""] * missing]

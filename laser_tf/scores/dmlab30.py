"""Human-normalised scores on the 30 levels of DMLab-30.

`dmlab30_reference_scores.csv` holds the random and human scores of IMPALA's published code
(Espeholt et al. 2018), undiscounted episode returns. Two levels have a version for training and one
for testing: the scores were taken on the test version and normalise both.
"""

import csv
import functools
import pathlib

_REFERENCE = pathlib.Path(__file__).with_name("dmlab30_reference_scores.csv")


@functools.cache
def test_levels() -> dict[str, str]:
    """Each level's name in training -> its name in testing; 28 are the same."""
    return {row["train_level"]: row["test_level"] for row in _rows()}


@functools.cache
def reference_scores() -> dict[str, tuple[float, float]]:
    """Level, by its name in training and in testing -> (random score, human score)."""
    return {
        row[name]: (float(row["random"]), float(row["human"]))
        for row in _rows()
        for name in ("train_level", "test_level")
    }


def _rows() -> list[dict[str, str]]:
    with _REFERENCE.open() as lines:
        return list(csv.DictReader(lines))

"""Human-normalised scores on the 57 Atari games.

`atari57_reference_scores.csv` holds the random and human scores from no-op starts (van Hasselt et
al. 2016), raw game points. video_pinball's random score is 16256.9 here; some sources print 0.
"""

import csv
import functools
import pathlib

_REFERENCE = pathlib.Path(__file__).with_name("atari57_reference_scores.csv")


@functools.cache
def reference_scores() -> dict[str, tuple[float, float]]:
    """Game -> (random score, human score)."""
    with _REFERENCE.open() as lines:
        return {
            row["game"]: (float(row["random"]), float(row["human"]))
            for row in csv.DictReader(lines)
        }

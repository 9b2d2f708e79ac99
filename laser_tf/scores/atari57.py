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


def human_normalised(game: str, score: float) -> float | None:
    """(score - random) / (human - random): 0 for random play, 1 for the human; None if unknown."""
    if game not in reference_scores():
        return None
    random_score, human_score = reference_scores()[game]
    return (score - random_score) / (human_score - random_score)

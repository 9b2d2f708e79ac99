"""Scores that MinAtar's are measured by; there is no human's.

`minatar_reference_scores.csv` holds our own: random play over 1,000 episodes (`launch.random_play`
with `configs/laser_minatar_multitask.py`), and LASER trained on the game alone for 300,000 frames
(`configs/laser_minatar.py`, seed 1), over 50 evaluation episodes. Both with sticky actions.
"""

import csv
import functools
import pathlib

_REFERENCE = pathlib.Path(__file__).with_name("minatar_reference_scores.csv")


@functools.cache
def reference_scores() -> dict[str, tuple[float, float]]:
    """Game -> (random score, single-task LASER's score)."""
    with _REFERENCE.open() as lines:
        return {
            row["game"]: (float(row["random"]), float(row["laser"]))
            for row in csv.DictReader(lines)
        }

"""Normalised scores: 0 for random play, 1 for a suite's reference.

Sources of the files `*_reference_scores.csv`:

* atari57: random and human scores from no-op starts (van Hasselt et al. 2016), raw game points.
  The random score of video_pinball is 16256.9 here; some sources print 0.
* dmlab30: random and human scores of IMPALA's published code (Espeholt et al. 2018), undiscounted
  episode returns. Two levels have separate versions for training and testing. Their scores were
  measured on the test version and normalise both.
* minatar: measured with this project, with sticky actions. Random play over 1,000 episodes
  (`launch.evaluate --random=laser:minatar_multitask`), and LASER trained on the game alone for
  300,000 frames (`laser:minatar`, seed 1), over 50 evaluation episodes.
"""

import csv
import functools
import math
import pathlib
from collections.abc import Mapping

HUMAN = "human"
_KINDS = {"atari": HUMAN, "dmlab": HUMAN, "minatar": "single_task"}
_FOLDER = pathlib.Path(__file__).parent


def kind(suite: str) -> str | None:
    """Returns whose score is 1: "human", or "single_task" for LASER on one task; None: no one's."""
    return _KINDS.get(suite)


@functools.cache
def reference_scores(suite: str) -> dict[str, tuple[float, float]]:
    """Returns task -> (random score, reference score); empty for a suite without references."""
    match suite:
        case "atari":
            return {row["game"]: _scores(row, "human") for row in _rows("atari57")}
        case "dmlab":
            return {
                row[name]: _scores(row, "human")
                for row in _rows("dmlab30")
                for name in ("train_level", "test_level")
            }
        case "minatar":
            return {row["game"]: _scores(row, "laser") for row in _rows("minatar")}
    return {}


@functools.cache
def dmlab_test_levels() -> dict[str, str]:
    """Returns each DMLab-30 level's name in training -> its name in testing; 28 are the same."""
    return {row["train_level"]: row["test_level"] for row in _rows("dmlab30")}


def _rows(name: str) -> list[dict[str, str]]:
    with (_FOLDER / f"{name}_reference_scores.csv").open() as lines:
        return list(csv.DictReader(lines))


def _scores(row: Mapping[str, str], reference: str) -> tuple[float, float]:
    return float(row["random"]), float(row[reference])


def normalised(suite: str, task: str, score: float) -> float | None:
    """Returns (score - random) / (reference - random) of a raw score; None without a reference."""
    scores = reference_scores(suite).get(task)
    if scores is None:
        return None
    random_score, reference_score = scores
    return (score - random_score) / (reference_score - random_score)


def normalised_scores(suite: str, scores: Mapping[str, float]) -> dict[str, float] | None:
    """Returns normalised scores by task; None unless each task has a finite score and a reference.

    Args:
      suite: Name of the suite.
      scores: Task -> raw score.
    """
    values = {task: normalised(suite, task, score) for task, score in scores.items()}
    if any(value is None or math.isnan(value) for value in values.values()):
        return None
    return values

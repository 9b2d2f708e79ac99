"""Normalised scores: 0 for random play, 1 for a suite's reference."""

import math
from collections.abc import Mapping

from laser_tf.scores import atari57, dmlab30, minatar

HUMAN = "human"
_SUITES = {
    "atari": (HUMAN, atari57.reference_scores),
    "dmlab": (HUMAN, dmlab30.reference_scores),
    "minatar": ("single_task", minatar.reference_scores),
}


def kind(suite: str) -> str | None:
    """Whose score is 1: "human", or "single_task" for an agent's own; None without any."""
    return _SUITES[suite][0] if suite in _SUITES else None


def normalised(suite: str, task: str, score: float) -> float | None:
    """(score - random) / (reference - random) of a task's raw score; None without a reference."""
    if suite not in _SUITES or task not in (scores := _SUITES[suite][1]()):
        return None
    random_score, reference_score = scores[task]
    return (score - random_score) / (reference_score - random_score)


def normalised_scores(suite: str, scores: Mapping[str, float]) -> dict[str, float] | None:
    """Those of several tasks; None unless each has a finite score and a reference."""
    values = {task: normalised(suite, task, score) for task, score in scores.items()}
    if any(value is None or math.isnan(value) for value in values.values()):
        return None
    return values

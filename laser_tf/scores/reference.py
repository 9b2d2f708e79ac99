"""Human-normalised scores of whatever suite has reference scores."""

import math
from collections.abc import Mapping

from laser_tf.scores import atari57, dmlab30

_SUITES = {"atari": atari57.human_normalised, "dmlab": dmlab30.human_normalised}


def human_normalised(suite: str, task: str, score: float) -> float | None:
    """(score - random) / (human - random) of a task's raw score; None without a reference."""
    normalise = _SUITES.get(suite)
    return normalise(task, score) if normalise else None


def human_normalised_scores(suite: str, scores: Mapping[str, float]) -> dict[str, float] | None:
    """Those of several tasks; None unless each has a finite score and a reference."""
    normalised = {task: human_normalised(suite, task, score) for task, score in scores.items()}
    if any(score is None or math.isnan(score) for score in normalised.values()):
        return None
    return normalised

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

`dopamine_curves.csv` is taken from Dopamine's baselines (Castro et al. 2018; Apache License 2.0;
https://github.com/google/dopamine, baselines/atari/data): raw returns on 55 Atari games, mean of
five seeds. A column is named by env frames: its values are means over the training episodes of the
million frames that end there (Dopamine's iteration), epsilon 0.01 included. The first million is
left out, because epsilon falls from 1 to 0.09 there (epsilon_decay_period in Dopamine's gin files).
Defender and surround are missing.
"""

import csv
import functools
import math
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Score = TypeVar("Score", float, np.ndarray, "pd.Series")

HUMAN = "human"
DOPAMINE_AGENTS = ("DQN", "Rainbow", "IQN")
DOPAMINE_SEEDS = 5  # of each agent, of which `dopamine_curves.csv` holds the mean
DOPAMINE_WINDOW = 1_000_000  # env frames that a mean is taken over
_KINDS = {"atari": HUMAN, "dmlab": HUMAN, "minatar": "single_task"}
_FOLDER = pathlib.Path(__file__).parent
_COLUMNS = {  # Suite -> file, columns of task and reference score.
    "atari": [("atari57", "game", "human")],
    "dmlab": [("dmlab30", "train_level", "human"), ("dmlab30", "test_level", "human")],
    "minatar": [("minatar", "game", "laser")],
}


def kind(suite: str) -> str | None:
    """Returns the agent whose score is 1: "human", or "single_task" for LASER on a single task."""
    return _KINDS.get(suite)


@functools.cache
def reference_scores(suite: str) -> dict[str, tuple[float, float]]:
    """Returns task -> (random score, reference score); empty for a suite without references."""
    return {
        row[task]: (float(row["random"]), float(row[column]))
        for name, task, column in _COLUMNS.get(suite, ())
        for row in _rows(name)
    }


@functools.cache
def dopamine_curves() -> "pd.DataFrame":
    """Returns Dopamine's returns: the columns game, agent, env_frames and value."""
    import pandas as pd

    table = pd.read_csv(_FOLDER / "dopamine_curves.csv")
    curves = table.melt(["game", "agent"], var_name="env_frames")
    return curves.astype({"env_frames": int})


def _rows(name: str) -> list[dict[str, str]]:
    with (_FOLDER / f"{name}_reference_scores.csv").open() as lines:
        return list(csv.DictReader(lines))


def normalised(suite: str, task: str, score: Score) -> Score:
    """Returns (score - random) / (reference - random) of raw scores; NaN without a reference."""
    random_score, reference_score = reference_scores(suite).get(task, (math.nan, math.nan))
    return (score - random_score) / (reference_score - random_score)


def normalised_scores(suite: str, scores: Mapping[str, float]) -> dict[str, float] | None:
    """Returns normalised scores by task; None if a score or reference is missing."""
    values = {task: normalised(suite, task, score) for task, score in scores.items()}
    if any(math.isnan(value) for value in values.values()):
        return None
    return values

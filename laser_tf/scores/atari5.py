"""Atari-5: the median human-normalised score over 57 Atari games, estimated from five games.

Aitchison, Sweetser and Hutter 2023, "Atari-5: Distilling the Arcade Learning Environment down to
Five Games". The coefficients are those of the least squares without intercept on the 44 agents
of https://github.com/maitchison/Atari-5 (dataset.csv, humans included) with scores in all five
games. Their medians are between 0.5 and 20; an estimate below is an extrapolation.
"""

import numpy as np

COEFFICIENTS = {
    "battle_zone": 0.381975,
    "double_dunk": 0.067910,
    "name_this_game": 0.310804,
    "phoenix": 0.124126,
    "qbert": 0.080485,
}
GAMES = tuple(COEFFICIENTS)
# Mean absolute error of the log of the estimate, by tenfold cross-validation over the algorithms.
RELATIVE_ERROR = 0.104


def estimate_median(scores: np.ndarray) -> np.ndarray:
    """Returns the estimated median over 57 games, float64 [...].

        log(1 + 100 median) = sum_i w_i log(1 + 100 max(0, score_i))

    Args:
      scores: Human-normalised scores of `GAMES`, 1 for human play, float64 [..., 5].
    """
    logs = np.log1p(100 * np.maximum(scores, 0))
    return np.expm1(logs @ np.array(list(COEFFICIENTS.values()))) / 100

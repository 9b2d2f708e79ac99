"""Estimates over several games with stratified bootstrap intervals (Agarwal et al. 2021).

They are rliable's, computed with SciPy, because rliable 1.2 requires arch, which does not import
alongside the pandas of requirements.lock. Only the interquartile mean differs, see below.

Scores are float64 [seeds, games], normalised; each game has the same number of seeds.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats


class Estimate(NamedTuple):
    """Value and 95% percentile bootstrap interval, which is NaN for a single seed."""

    value: float
    low: float
    high: float


def interval(
    samples: Sequence[np.ndarray], statistic: Callable[..., np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the bounds of a statistic's 95% percentile bootstrap interval, [...].

    Each of the samples, [seeds, ...], is resampled separately along its first axis. The statistic
    is a function of these arrays along its argument `axis`.
    """
    found = stats.bootstrap(
        tuple(samples), statistic, n_resamples=2_000, batch=100, method="percentile", rng=0
    )
    return found.confidence_interval.low, found.confidence_interval.high


def median(scores: np.ndarray) -> Estimate:
    """Returns the median over games of the mean over seeds."""
    return _estimate(scores, lambda table: np.median(table.mean(axis=-2), axis=-1))


def mean(scores: np.ndarray) -> Estimate:
    """Returns the mean over games and seeds."""
    return _estimate(scores, lambda table: table.mean(axis=(-2, -1)))


def interquartile_mean(scores: np.ndarray) -> Estimate:
    """Returns the mean of the middle half of all scores, of games and seeds together.

    Scores at the ends of this half count in part, unlike in rliable, which rounds a quarter of the
    scores down. So the share that is left out does not depend on the number of seeds.
    """
    cut = scores.size / 4
    from_start = np.clip(np.arange(1, scores.size + 1) - cut, 0, 1)
    weights = np.minimum(from_start, from_start[::-1])

    def middle(table: np.ndarray) -> np.ndarray:
        ascending = np.sort(table.reshape(*table.shape[:-2], -1), axis=-1)
        return ascending @ weights / weights.sum()

    return _estimate(scores, middle)


def probability_of_improvement(scores: np.ndarray, others: np.ndarray) -> Estimate:
    """Returns how likely a seed scores above a seed of another agent: the mean over games.

    Ties count 0.5. Scores of the other agent, [other seeds, games], are not resampled.
    """

    def improvement(table: np.ndarray) -> np.ndarray:
        signs = np.sign(table[..., :, None, :] - others)
        return (signs.mean(axis=(-3, -2, -1)) + 1) / 2

    return _estimate(scores, improvement)


def _estimate(scores: np.ndarray, measure: Callable[[np.ndarray], np.ndarray]) -> Estimate:
    """Resamples the seeds of each game separately; `measure` maps [..., seeds, games] to [...]."""
    value = float(measure(scores))
    if len(scores) < 2:
        return Estimate(value, np.nan, np.nan)

    def measure_games(*games: np.ndarray, axis: int) -> np.ndarray:
        return measure(np.stack([np.moveaxis(game, axis, -1) for game in games], axis=-1))

    low, high = interval(scores.T, measure_games)
    return Estimate(value, float(low), float(high))

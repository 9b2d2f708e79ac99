"""Percentile bootstrap intervals.

They are what rliable's stratified bootstrap comes to; rliable 1.2 itself would add arch,
statsmodels and four more packages, and arch does not import beside the pandas of requirements.lock.
"""

from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

_LEVEL, _RESAMPLES = 0.95, 2_000


def interval(
    samples: Sequence[np.ndarray], statistic: Callable[..., np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Resamples each sample by itself, along its first axis; the same bounds each time.

    Args:
      samples: arrays [seeds, ...].
      statistic: of as many arrays, along the axis that it is given as `axis`.

    Returns:
      The lower and the upper bound of the statistic's 95% interval, [...].
    """
    found = stats.bootstrap(
        tuple(samples),
        statistic,
        n_resamples=_RESAMPLES,
        batch=100,
        confidence_level=_LEVEL,
        method="percentile",
        rng=0,
    ).confidence_interval
    return found.low, found.high

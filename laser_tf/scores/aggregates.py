"""Aggregates normalised scores over tasks and env frames, by the papers' protocols.

Normalisation is linear, so it may come before or after an average of episodes, but not after a
median or a cap.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # Training does not need pandas, which takes a third of a second to load.
    import pandas as pd

ATARI_BUCKET, DMLAB_BUCKET = 1_000_000, 10_000_000  # env frames; LASER, appendix A.3
DMLAB_GROUP = 10  # buckets; "further downsampling to 100M env steps", there
_MIN_POINTS, _POINTS = 20, 50  # of a curve that keeps the papers' buckets, and of any other


def median_normalised(scores: Mapping[str, float]) -> float:
    """Returns the median over tasks (LASER, section 5 and appendix A.3)."""
    return float(np.median(list(scores.values())))


def mean_capped_normalised(scores: Mapping[str, float]) -> float:
    """Returns the mean of min(1, score), so that no task makes up for another (IMPALA, 5.3.1)."""
    return float(np.minimum(1.0, list(scores.values())).mean())


def choose_bucket(suite: str, env_frames: int) -> tuple[int, int]:
    """Returns env frames of a bucket, and the number of buckets averaged into one point.

    These are the papers' for long runs on Atari and DMLab, otherwise a fiftieth of the run.
    """
    papers = {"atari": (ATARI_BUCKET, 1), "dmlab": (DMLAB_BUCKET, DMLAB_GROUP)}
    bucket, group = papers.get(suite, (env_frames, 1))
    if env_frames >= _MIN_POINTS * bucket * group:
        return bucket, group
    if env_frames >= _MIN_POINTS * bucket:
        return bucket, 1
    return -(-env_frames // _POINTS), 1


def sweep_curves(
    episodes: "pd.DataFrame", tasks: Sequence[str], bucket: int, group: int = 1
) -> "pd.DataFrame":
    """Returns the score of each member of a sweep over env frames (LASER, appendix A.3).

    The order is the paper's: means in buckets, medians over tasks, means of groups. An earlier
    maximum over members would pick lucky episodes, of another member for each task.

    Args:
      episodes: Columns member, task, env_frames (when the episode ended) and score.
      tasks: All tasks, also those without an episode so far.
      bucket: Env frames of a bucket.
      group: Buckets averaged into a point.

    Returns:
      Columns member, env_frames (the middle of a point) and score. The score is NaN if a task has
      no episode in a bucket of the point.
    """
    buckets = episodes["env_frames"] // bucket
    means = episodes.groupby(["member", buckets, "task"])["score"].mean().unstack()
    medians = means.reindex(columns=tasks).median(axis="columns", skipna=False)
    medians = medians.reset_index(name="score")
    medians["env_frames"] = (medians["env_frames"] // group + 0.5) * bucket * group
    points = medians.groupby(["member", "env_frames"])["score"].agg(["mean", "count"])
    return points["mean"].where(points["count"] == group).rename("score").reset_index()


def trailing_means(steps: np.ndarray, values: np.ndarray, at: np.ndarray, count: int) -> np.ndarray:
    """Returns the mean of the last `count` or fewer episodes at env frames `at`, float64 [K].

    Episodes end at ascending env frames `steps`, [E], with returns `values`, [E]. The mean is NaN
    before the first episode.
    """
    ends = np.searchsorted(steps, at, side="right")
    return _means_between(values, np.maximum(0, ends - count), ends)


def window_means(steps: np.ndarray, values: np.ndarray, at: np.ndarray, window: int) -> np.ndarray:
    """Returns the mean of the episodes that end in (n - window, n] for each n in `at`, float64 [K].

    It is NaN without an episode; for the arguments see `trailing_means`.
    """
    starts = np.searchsorted(steps, np.asarray(at) - window, side="right")
    return _means_between(values, starts, np.searchsorted(steps, at, side="right"))


def _means_between(values: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    sums = np.concatenate([[0.0], np.cumsum(values)])
    means = np.full(len(ends), np.nan)
    np.divide(sums[ends] - sums[starts], ends - starts, out=means, where=ends > starts)
    return means

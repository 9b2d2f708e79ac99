"""One number for many tasks, and means of episodes over env frames, by the papers' protocols.

Scores are normalised (`scores.reference`): 0 for random play, 1 for the reference, which is the
human in the papers. Normalising is linear, so that it may come before or after an average of
episodes, but never after a median or a cap.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

ATARI_BUCKET, DMLAB_BUCKET = 1_000_000, 10_000_000  # env frames; LASER, appendix A.3
DMLAB_GROUP = 10  # buckets; "further downsampling to 100M env steps", there
_MIN_POINTS, _POINTS = 20, 50  # of a curve that keeps the papers' buckets, and of any other


def median_normalised(scores: Mapping[str, float]) -> float:
    """Returns the median over tasks (LASER, section 5 and appendix A.3).

    Args:
      scores: Task -> finite normalised score, at least one.
    """
    return float(np.median(list(scores.values())))


def mean_capped_normalised(scores: Mapping[str, float]) -> float:
    """Returns the mean of min(1, score), so that no task makes up for another (IMPALA, 5.3.1).

    Args:
      scores: Task -> finite normalised score, at least one.
    """
    return float(np.minimum(1.0, list(scores.values())).mean())


def choose_bucket(suite: str, env_frames: int) -> tuple[int, int]:
    """Returns the papers' bucket if a run is long enough for it, otherwise a fiftieth of the run.

    Args:
      suite: Name of the suite; "atari" and "dmlab" have buckets of the papers'.
      env_frames: Budget of the run.

    Returns:
      Env frames of a bucket, and the number of buckets that are averaged into one point.
    """
    papers = {"atari": (ATARI_BUCKET, 1), "dmlab": (DMLAB_BUCKET, DMLAB_GROUP)}
    bucket, group = papers.get(suite, (env_frames, 1))
    if env_frames >= _MIN_POINTS * bucket * group:
        return bucket, group
    if env_frames >= _MIN_POINTS * bucket:
        return bucket, 1
    return -(-env_frames // _POINTS), 1


def sweep_curves(episodes: pd.DataFrame, bucket: int, group: int = 1) -> pd.DataFrame:
    """Returns the score of each member of a sweep over env frames (LASER, appendix A.3).

    The order is the paper's: means in buckets, medians over tasks, means of groups. An earlier
    maximum over members would pick lucky episodes, of another member for each task.

    Args:
      episodes: Columns member, task, env_frames (when the episode ended) and score.
      bucket: Env frames; bucket k holds the frames from k * bucket to below (k + 1) * bucket.
      group: Buckets averaged into a point; 10 on DMLab ("downsampling to 100M env steps").

    Returns:
      Columns member, env_frames (the middle of a point) and score: NaN if a task has no episode in
      one of the point's buckets.
    """
    buckets = episodes["env_frames"] // bucket
    means = episodes.groupby(["member", buckets, "task"])["score"].mean().unstack()
    medians = means.median(axis="columns", skipna=False).reset_index(name="score")
    medians["env_frames"] = (medians["env_frames"] // group + 0.5) * bucket * group
    points = medians.groupby(["member", "env_frames"])["score"].agg(["mean", "count"])
    return points["mean"].where(points["count"] == group).rename("score").reset_index()


def trailing_means(steps: np.ndarray, values: np.ndarray, at: np.ndarray, count: int) -> np.ndarray:
    """Returns the mean of the last `count` episodes at some env frames.

    Args:
      steps: Integers [E], env frames at which episodes ended, ascending.
      values: float [E], returns of the episodes.
      at: [K], env frames at which the means are taken.
      count: Episodes in a mean; fewer at the beginning.

    Returns:
      float64 [K]; NaN before the first episode.
    """
    ends = np.searchsorted(steps, at, side="right")
    return _means_between(values, np.maximum(0, ends - count), ends)


def window_means(steps: np.ndarray, values: np.ndarray, at: np.ndarray, window: int) -> np.ndarray:
    """Returns the mean of the episodes that ended within the last env frames.

    Args:
      steps: Integers [E], env frames at which episodes ended, ascending.
      values: float [E], returns of the episodes.
      at: [K], env frames at which the means are taken.
      window: Env frames; the mean at frame n is of the episodes that ended after n - window and
        not after n.

    Returns:
      float64 [K]; NaN if no episode ended.
    """
    starts = np.searchsorted(steps, np.asarray(at) - window, side="right")
    return _means_between(values, starts, np.searchsorted(steps, at, side="right"))


def _means_between(values: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    sums = np.concatenate([[0.0], np.cumsum(values)])
    means = np.full(len(ends), np.nan)
    np.divide(sums[ends] - sums[starts], ends - starts, out=means, where=ends > starts)
    return means

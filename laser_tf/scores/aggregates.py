"""One number, or one curve, for many tasks: the papers' protocols.

Scores are normalised here (`scores.reference`): 0 for random play, 1 for the reference, which is
the human in the papers. Normalising is linear, so that it may come before or after an average of
episodes, but never after a median or a cap.
"""

from collections.abc import Mapping, Sequence

import numpy as np

ATARI_BUCKET, DMLAB_BUCKET = 1_000_000, 10_000_000  # env frames; LASER, appendix A.3
DMLAB_GROUP = 10  # buckets; "further downsampling to 100M env steps", there
FEWEST_POINTS, POINTS = 20, 50  # of a curve that keeps the papers' buckets, and of any other


def median_normalised(scores: Mapping[str, float]) -> float:
    """The median over tasks (LASER, section 5 and appendix A.3).

    Args:
      scores: task -> normalised score.

    Raises:
      ValueError: without tasks, or for a score that is no finite number.
    """
    return float(np.median(_values(scores)))


def mean_normalised(scores: Mapping[str, float]) -> float:
    """The mean over tasks, most of it the easiest ones' (Gruslys et al. 2018, section 6.2).

    Args:
      scores: task -> normalised score.

    Raises:
      ValueError: without tasks, or for a score that is no finite number.
    """
    return float(_values(scores).mean())


def mean_capped_normalised(scores: Mapping[str, float]) -> float:
    """The mean over tasks of min(1, score): no task makes up for another (IMPALA, section 5.3.1).

    Args:
      scores: task -> normalised score.

    Raises:
      ValueError: without tasks, or for a score that is no finite number.
    """
    return float(np.minimum(1.0, _values(scores)).mean())


def _values(scores: Mapping[str, float]) -> np.ndarray:
    if not scores:
        raise ValueError("there are no scores: pass those of one task at least")
    for task, score in scores.items():
        if score is None or not np.isfinite(score):
            raise ValueError(
                f"the score of {task} is {score}: pass a finite number or leave it out"
            )
    return np.array(list(scores.values()), float)


def choose_bucket(suite: str, env_frames: int) -> tuple[int, int]:
    """The papers' bucket where a run is long enough for it, a fiftieth of the run elsewhere.

    Args:
      suite: its name; "atari" and "dmlab" have buckets of the papers'.
      env_frames: the run's budget.

    Returns:
      Env frames of a bucket and how many are averaged into one point, see `sweep_curve`.
    """
    papers = {"atari": (ATARI_BUCKET, 1), "dmlab": (DMLAB_BUCKET, DMLAB_GROUP)}
    bucket, group = papers.get(suite, (env_frames, 1))
    if env_frames >= FEWEST_POINTS * bucket * group:
        return bucket, group
    if env_frames >= FEWEST_POINTS * bucket:
        return bucket, 1
    return -(-env_frames // POINTS), 1


def bucket_means(steps: np.ndarray, values: np.ndarray, bucket: int) -> np.ndarray:
    """Episode returns averaged in buckets of env frames (LASER, appendix A.3).

    Args:
      steps: integers [E], env frames at which episodes ended, in any order.
      values: float [E], their returns, raw or normalised.
      bucket: env frames; `ATARI_BUCKET` or `DMLAB_BUCKET`. Bucket k holds the frames from
        k * bucket to below (k + 1) * bucket.

    Returns:
      float64 [K], up to the last bucket with an episode; NaN for a bucket without any.

    Raises:
      ValueError: for arrays of different shapes, negative steps or a bucket below 1.
    """
    steps, values = np.asarray(steps, np.int64), np.asarray(values, float)
    if steps.ndim != 1 or steps.shape != values.shape:
        raise ValueError(
            f"steps are {list(steps.shape)}, values {list(values.shape)}: pass two of one length"
        )
    if bucket < 1:
        raise ValueError(f"bucket is {bucket}: use 1 env frame or more")
    if (steps < 0).any():
        raise ValueError(f"steps begin at {steps.min()}: use 0 env frames or more")
    buckets = steps // bucket
    counts = np.bincount(buckets)
    means = np.full(len(counts), np.nan)
    np.divide(np.bincount(buckets, values), counts, out=means, where=counts > 0)
    return means


def trailing_means(steps: np.ndarray, values: np.ndarray, at: np.ndarray, count: int) -> np.ndarray:
    """The mean of the last episodes, at any env frames.

    Args:
      steps: integers [E], env frames at which episodes ended, ascending.
      values: float [E], their returns.
      at: [K], env frames at which the means are taken.
      count: episodes in a mean; fewer where there are no more yet.

    Returns:
      float64 [K]; NaN before the first episode.

    Raises:
      ValueError: for steps that fall, or arrays of different shapes.
    """
    steps, values = _checked_episodes(steps, values)
    ends = np.searchsorted(steps, at, side="right")
    return _means_between(values, np.maximum(0, ends - count), ends)


def window_means(steps: np.ndarray, values: np.ndarray, at: np.ndarray, window: int) -> np.ndarray:
    """The mean of the episodes that ended within the last env frames, at any env frames.

    Args:
      steps: integers [E], env frames at which episodes ended, ascending.
      values: float [E], their returns.
      at: [K], env frames at which the means are taken.
      window: env frames: the mean at frame n is of the episodes that ended after n - window, and
        at n at the latest.

    Returns:
      float64 [K]; NaN where no episode ended.

    Raises:
      ValueError: for steps that fall, or arrays of different shapes.
    """
    steps, values = _checked_episodes(steps, values)
    starts, ends = (
        np.searchsorted(steps, frames, side="right") for frames in (np.asarray(at) - window, at)
    )
    return _means_between(values, starts, ends)


def _checked_episodes(steps: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    steps, values = np.asarray(steps, np.int64), np.asarray(values, float)
    if steps.ndim != 1 or steps.shape != values.shape:
        raise ValueError(
            f"steps are {list(steps.shape)}, values {list(values.shape)}: pass two of one length"
        )
    if (np.diff(steps) < 0).any():
        raise ValueError("steps fall: sort the episodes by the frames at which they ended")
    return steps, values


def _means_between(values: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    sums = np.concatenate([[0.0], np.cumsum(values)])
    means = np.full(len(ends), np.nan)
    np.divide(sums[ends] - sums[starts], ends - starts, out=means, where=ends > starts)
    return means


def sweep_curve(curves: Sequence[Mapping[str, np.ndarray]], group: int = 1) -> np.ndarray:
    """What a sweep has reached over its env frames (LASER, appendix A.3).

    The order is the paper's: averages in buckets first (`bucket_means`, already in the arguments),
    then the median over an agent's tasks, then averages of `group` buckets, and at the end, at each
    point, the best agent of the sweep. To take the maximum earlier would pick lucky episodes: each
    task would have an agent of its own.

    Args:
      curves: for each agent, task -> float [K] normalised bucket means. K may differ: an
        agent counts where it has a value for each of its tasks.
      group: buckets; 1 on Atari, 10 on DMLab ("downsampling to 100M env steps").

    Returns:
      float64 [ceil(K / group)] for the largest K; NaN where no agent counts.

    Raises:
      ValueError: without agents or tasks, for agents of different tasks or a group below 1.
    """
    if not curves or not all(curves):
        raise ValueError("there are no curves: pass those of one agent and one task at least")
    if group < 1:
        raise ValueError(f"group is {group}: use 1 bucket or more")
    for curve in curves:
        different = sorted(curve.keys() ^ curves[0].keys())
        if different:
            raise ValueError(f"not all agents have {different[0]}: pass the same tasks for each")
    length = max(len(means) for curve in curves for means in curve.values())
    length += -length % group
    medians = [
        np.median([_padded(means, length) for means in curve.values()], axis=0) for curve in curves
    ]
    grouped = np.reshape(medians, [len(curves), -1, group]).mean(axis=2)
    return np.fmax.reduce(grouped)  # unlike a maximum, it passes over the agents without a value


def _padded(means: np.ndarray, length: int) -> np.ndarray:
    return np.pad(np.asarray(means, float), (0, length - len(means)), constant_values=np.nan)

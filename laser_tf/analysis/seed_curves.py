"""Curves of several seeds: read from runs, summarised, and drawn with what the seeds leave open."""

import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib import axes as axes_module

from laser_tf import errors
from laser_tf.analysis import panels, wall_clock
from laser_tf.monitoring import episode_log, tensorboard
from laser_tf.scores import aggregates, bootstrap
from laser_tf.workdir import run_directory

COLUMNS = ("mean", "interval_low", "interval_high", "min", "max", "seeds")
EPISODES = 100  # in a mean of returns
FEWEST_SEEDS = 3  # of an interval; fewer are drawn one by one
_POINTS = 200


class Summary(NamedTuple):
    """What several seeds come to, at one point or at many: float64 arrays of one shape."""

    mean: np.ndarray
    low: np.ndarray  # of the mean's 95% interval; NaN for fewer than `FEWEST_SEEDS`
    high: np.ndarray
    minimum: np.ndarray
    maximum: np.ndarray
    values: np.ndarray  # [seeds, ...]

    @property
    def seeds(self) -> int:
        """How many there are."""
        return len(self.values)


_NAN = np.float64(np.nan)
NOTHING = Summary(_NAN, _NAN, _NAN, _NAN, _NAN, np.zeros(0))


def summarise(values: np.ndarray | Sequence[float]) -> Summary:
    """Of the first axis, the seeds, at least one: the mean, its interval, and the range."""
    array = np.asarray(values, float)
    low, high = _interval(array)
    return Summary(array.mean(axis=0), low, high, array.min(axis=0), array.max(axis=0), array)


def _interval(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Percentile bootstrap over the seeds; NaN for few, and where one of them has no value."""
    bounds = np.full((2, *array.shape[1:]), np.nan)
    is_known = np.isfinite(array).all(axis=0)
    if len(array) >= FEWEST_SEEDS and is_known.any():  # of a NaN the bootstrap would warn
        bounds[:, is_known] = bootstrap.interval([array[:, is_known]], np.mean)
    return bounds[0], bounds[1]


class _Curve(NamedTuple):
    """Of one run."""

    first: float  # env frames, or seconds
    last: float
    at: Callable[[np.ndarray], np.ndarray]  # env frames [K], or seconds -> values [K]
    tasks: frozenset[str] = frozenset()  # that a mean return is over


def read(
    runs: Sequence[pathlib.Path], metric: str, *, over_seconds: bool = False
) -> tuple[np.ndarray, Summary]:
    """Env frames, up to where the shortest run came, and the summary of the runs at each.

    Args:
      runs: their folders, a seed each.
      metric: `tensorboard.RETURN` is taken from the log of episodes, at each point the last
        `EPISODES` of a task and then the mean over tasks; anything else from TensorBoard's rows.
      over_seconds: returns seconds of training in the place of env frames, see `wall_clock`.

    Raises:
      UserError: if a folder holds no run, or a run no episode or no value of the metric.
    """
    for run in runs:
        run_directory.check_no_sweep(run)
        if not (run / "tensorboard").is_dir() and not (run / episode_log.FILE).exists():
            raise errors.UserError(f"{run} holds no run: name the folder of one")
    read_one = _read_returns if metric == tensorboard.RETURN else _read_scalars
    curves = [read_one(run, metric) for run in runs]
    of_all = frozenset().union(*(curve.tasks for curve in curves))
    for run, curve in zip(runs, curves, strict=True):
        if missing := of_all - curve.tasks:
            raise errors.UserError(
                f"{run} holds no finished episode of {min(missing)}, as other runs do, and a mean "
                "over other tasks does not compare: leave it out, or wait for it"
            )
    if over_seconds:
        curves = [_timed(curve, run) for curve, run in zip(curves, runs, strict=True)]
    grid = points(max(curve.first for curve in curves), min(curve.last for curve in curves))
    return grid, summarise([curve.at(grid) for curve in curves])


def points(first: float, last: float) -> np.ndarray:
    """Where a curve is drawn, ascending: one point where the seeds have no stretch in common."""
    return np.linspace(first, last, _POINTS) if first < last else np.array([first])


def _timed(curve: _Curve, run: pathlib.Path) -> _Curve:
    """A curve over env frames as one over seconds of training."""
    frames, seconds = wall_clock.read(run)
    first, last = np.interp((curve.first, curve.last), frames, seconds)

    def at(grid: np.ndarray) -> np.ndarray:
        # Rounded there and back, frames may be of before the curve.
        return curve.at(np.interp(grid, seconds, frames).clip(curve.first, curve.last))

    return curve._replace(first=first, last=last, at=at)


def _read_returns(run: pathlib.Path, _: str) -> _Curve:
    by_task = episode_log.read(run)
    episode_log.check(run, by_task)
    tasks = by_task.values()

    def at(grid: np.ndarray) -> np.ndarray:
        means = [
            aggregates.trailing_means(task.env_frames, task.returns, grid, EPISODES)
            for task in tasks
        ]
        return np.mean(means, axis=0)

    # From where every task has been played: a mean of other tasks compares with nobody's.
    first = max(task.env_frames[0] for task in tasks)
    return _Curve(first, max(task.env_frames[-1] for task in tasks), at, frozenset(by_task))


def _read_scalars(run: pathlib.Path, metric: str) -> _Curve:
    frames, values = tensorboard.read_scalars(run / "tensorboard", metric)
    if not len(frames):
        raise errors.UserError(f"{run} holds no values of {metric}")
    return _Curve(frames[0], frames[-1], lambda grid: np.interp(grid, frames, values))


def draw(
    axes: axes_module.Axes, x: Sequence[float], summary: Summary, label: str, **style: str
) -> None:
    """Draws the seeds' mean over x; `style` is the line's.

    The mean's interval is shaded. Two seeds, too few for one, are drawn thin themselves.
    """
    (line,) = axes.plot(x, summary.mean, label=label, **style)
    if summary.seeds >= FEWEST_SEEDS:
        axes.fill_between(
            x, summary.low, summary.high, alpha=0.2, color=line.get_color(), linewidth=0
        )
    elif summary.seeds > 1:
        for of_seed in summary.values:
            axes.plot(x, of_seed, color=line.get_color(), linewidth=0.7, alpha=0.6)
    axes.grid(alpha=0.3)


def explanation(summaries: Sequence[Summary]) -> str:
    """What `draw` shows of them beside the means, in words; "" for nothing."""
    several = {summary.seeds >= FEWEST_SEEDS for summary in summaries if summary.seeds > 1}
    words = {True: "shaded: 95% bootstrap interval of the mean", False: "thin: single seeds"}
    return "; ".join(words[has_interval] for has_interval in sorted(several, reverse=True))


def rows(grid: np.ndarray, summary: Summary, *, over_seconds: bool = False) -> list[list]:
    """A curve's points: env frames, or seconds, and the `COLUMNS`; an interval may be empty."""
    decimals = 2 if over_seconds else 0  # short curves have several points a second
    return [
        [f"{x:.{decimals}f}", *panels.cells(values), summary.seeds]
        for x, *values in zip(grid, *summary[:5], strict=True)
    ]

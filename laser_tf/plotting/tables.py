"""Tables of learning curves: reading runs, summarising seeds, and writing CSV files.

A table of curves has the columns `game`, `label`, `seed`, `env_frames` or `seconds`, and `value`.
All seeds of a game and label share one grid of points.
"""

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from laser_tf import errors
from laser_tf.monitoring import episode_log, tensorboard
from laser_tf.scores import aggregates, comparison
from laser_tf.workdir import atomic, run_directory

EPISODES = 100  # in the mean of returns at a point, and in a final score
MIN_INTERVAL_SEEDS = 3
SUMMARY = ["mean", "interval_low", "interval_high", "min", "max", "seeds"]
ENV_FRAMES, SECONDS = "env_frames", "seconds"
RETURN = tensorboard.RETURN

_POINTS = 200
_WALL_SECONDS = "run/wall_seconds"

Runs = Mapping[str, Mapping[str, Sequence[pathlib.Path]]]  # game -> label -> one run per seed


def each(runs: Runs) -> Iterator[tuple[str, str, int, pathlib.Path]]:
    """Yields game, label, number of the seed (from 1) and directory of each run."""
    for game, labels in runs.items():
        for label, seeds in labels.items():
            for number, run in enumerate(seeds, 1):
                yield game, label, number, run


class _Curve(NamedTuple):
    """Values of one run."""

    points: np.ndarray  # [n], ascending; env frames or seconds
    values: np.ndarray  # float64 [n]
    tasks: frozenset[str]  # that the values are a mean over; none of a metric


def read(runs: Runs, metric: str = RETURN, x: str = ENV_FRAMES) -> pd.DataFrame:
    """Returns a table of curves.

    Args:
      runs: Run directories.
      metric: Name in TensorBoard. `RETURN` is computed from the log of episodes. It is the mean of
        the last `EPISODES` of a task, then the mean over tasks.
      x: `ENV_FRAMES`, or `SECONDS` of training.

    Raises:
      UserError: If a directory holds no run, or a run lacks episodes or values of the metric.
    """
    tables = []
    for game, labels in runs.items():
        for label, seeds in labels.items():
            curves = [_read_run(run, metric, x) for run in seeds]
            all_tasks = frozenset().union(*(curve.tasks for curve in curves))
            for run, curve in zip(seeds, curves, strict=True):
                if missing := all_tasks - curve.tasks:
                    raise errors.UserError(
                        f"{run} holds no finished episode of {min(missing)}, unlike other seeds. "
                        "Leave the run out, or wait for an episode."
                    )
            first = max(curve.points[0] for curve in curves)
            grid = make_grid(first, min(curve.points[-1] for curve in curves))
            for seed, curve in enumerate(curves, 1):
                values = np.interp(grid, curve.points, curve.values)
                columns = {"game": game, "label": label, "seed": seed, x: grid, "value": values}
                tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def make_grid(first: float, last: float) -> np.ndarray:
    """Returns the points of a curve, ascending: one point if seeds share no range."""
    return np.linspace(first, last, _POINTS) if first < last else np.array([float(first)])


def _read_run(run: pathlib.Path, metric: str, x: str) -> _Curve:
    run_directory.check_no_sweep(run)
    if not (run / "tensorboard").is_dir() and not (run / episode_log.FILE).exists():
        raise errors.UserError(f"{run} holds no run. Name a run directory.")
    tasks = {}
    if metric == RETURN:
        tasks = episode_log.read(run)
        episode_log.check(run, tasks)
        # Before each task has an episode, means would be over other tasks than later.
        first = max(task.env_frames[0] for task in tasks.values())
        frames = np.unique(np.concatenate([task.env_frames for task in tasks.values()]))
        frames = frames[frames >= first]
        means = [
            aggregates.trailing_means(task.env_frames, task.returns, frames, EPISODES)
            for task in tasks.values()
        ]
        values = np.mean(means, axis=0)
    else:
        frames, values = _read_scalars(run, metric)
    points = frames if x == ENV_FRAMES else np.interp(frames, *wall_clock(run))
    return _Curve(points, values, frozenset(tasks))


def wall_clock(run: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
    """Returns env frames [n + 1] and the seconds of training [n + 1] until them, from 0 on."""
    frames, seconds = _read_scalars(run, _WALL_SECONDS)
    return np.append(0, frames), np.append(0.0, seconds)


def _read_scalars(run: pathlib.Path, metric: str) -> tuple[np.ndarray, np.ndarray]:
    frames, values = tensorboard.read_scalars(run / "tensorboard", metric)
    if not len(frames):
        raise errors.UserError(
            f"{run} holds no values of {metric}. Use a name in TensorBoard, or train longer."
        )
    return frames, values


def summarise(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Returns mean, 95% bootstrap interval and range over seeds: the columns `by` and `SUMMARY`.

    The interval is missing for fewer than `MIN_INTERVAL_SEEDS` seeds.

    Args:
      table: Has columns `by` and `value`, a row for each seed; missing values do not count.
      by: Columns that identify a point.
    """
    points = table.groupby(list(by), sort=False)["value"]
    summary = points.agg(mean="mean", min="min", max="max", seeds="count")
    samples = points.agg(lambda point: tuple(point.dropna()))
    summary[["interval_low", "interval_high"]] = np.nan
    for seeds in summary["seeds"].unique():
        if seeds >= MIN_INTERVAL_SEEDS:
            chosen = summary.index[summary["seeds"] == seeds]
            bounds = comparison.interval([np.transpose(samples[chosen].tolist())], np.mean)
            summary.loc[chosen, ["interval_low", "interval_high"]] = np.transpose(bounds)
    return summary[SUMMARY].reset_index()


def write_csv(table: pd.DataFrame, path: pathlib.Path) -> None:
    """Writes a table with six significant digits; missing values are empty."""
    decimals = {ENV_FRAMES: "{:.0f}", SECONDS: "{:.2f}"}
    rounded = {x: table[x].map(text.format) for x, text in decimals.items() if x in table}
    text = table.assign(**rounded).to_csv(index=False, float_format="%.6g")
    atomic.write(path, text)

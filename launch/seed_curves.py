"""Curves of several seeds: read from runs, summarised, and drawn with the seeds' range."""

import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib import axes as axes_module

from laser_tf.runtime import metrics
from launch import command_line

COLUMNS = ("mean", "min", "max", "seeds")
_POINTS = 200


class Summary(NamedTuple):
    """What several seeds come to, at one point or at many."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    seeds: int


NOTHING = Summary(*np.full(3, np.nan), 0)


def summarise(values: np.ndarray | Sequence[float]) -> Summary:
    """Mean and range over the first axis, the seeds, at least one."""
    array = np.asarray(values)
    return Summary(array.mean(axis=0), array.min(axis=0), array.max(axis=0), len(array))


def read(runs: Sequence[pathlib.Path], metric: str) -> tuple[np.ndarray, Summary]:
    """Env frames, up to where the shortest run came, and the summary of the runs at each.

    Raises:
      UsageError: if a folder holds no run, or a run no value of the metric.
    """
    curves = []
    for run in runs:
        if not (run / "tensorboard").is_dir():
            raise command_line.UsageError(f"{run} holds no run: name the folder of one")
        frames, values = metrics.read_scalars(run / "tensorboard", metric)
        if not len(frames):
            raise command_line.UsageError(f"{run} holds no values of {metric}")
        curves.append((frames, values))
    first, last = max(f[0] for f, _ in curves), min(f[-1] for f, _ in curves)
    grid = np.linspace(first, last, _POINTS)
    return grid, summarise([np.interp(grid, frames, values) for frames, values in curves])


def draw(
    axes: axes_module.Axes, x: Sequence[float], summary: Summary, label: str, **style: str
) -> None:
    """Draws the seeds' mean over x, with their range shaded; `style` is the line's."""
    (line,) = axes.plot(x, summary.mean, label=label, **style)
    axes.fill_between(x, summary.low, summary.high, alpha=0.2, color=line.get_color())
    axes.grid(alpha=0.3)


def rows(frames: np.ndarray, summary: Summary) -> list[list]:
    """Of a curve: env frames and the `COLUMNS` of each point."""
    points = zip(frames, summary.mean, summary.low, summary.high, strict=True)
    return [
        [int(frame), *(f"{value:.3f}" for value in values), summary.seeds]
        for frame, *values in points
    ]

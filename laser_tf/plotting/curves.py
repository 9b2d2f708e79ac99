"""Learning curves of several seeds: reading, summarising and drawing.

A table of curves has the columns `game`, `label`, `seed`, `env_frames` or `seconds`, and `value`.
All seeds of a game and label share one grid of points.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple

import matplotlib
import numpy as np
import pandas as pd

matplotlib.use("Agg")

import seaborn
from matplotlib import axes as axes_module
from matplotlib import figure as figure_module
from matplotlib import pyplot

from laser_tf import errors
from laser_tf.monitoring import episode_log, tensorboard
from laser_tf.scores import aggregates, comparison
from laser_tf.workdir import run_directory

EPISODES = 100  # in the mean of returns at a point
MIN_INTERVAL_SEEDS = 3  # Fewer seeds are drawn one by one.
SUMMARY = ["mean", "interval_low", "interval_high", "min", "max", "seeds"]
ENV_FRAMES, SECONDS = "env_frames", "seconds"
RETURN_LABEL = f"Episode return, mean of {EPISODES}"

_POINTS = 200
_WALL_SECONDS = "run/wall_seconds"

Runs = Mapping[str, Mapping[str, Sequence[pathlib.Path]]]  # game -> label -> one run per seed


class _Curve(NamedTuple):
    """Values of one run over env frames."""

    env_frames: np.ndarray  # int64 [n], ascending
    values: np.ndarray  # float64 [n]
    tasks: frozenset[str] = frozenset()  # that the values are a mean over

    def at(self, env_frames: np.ndarray) -> np.ndarray:
        return np.interp(env_frames, self.env_frames, self.values)


def read(runs: Runs, metric: str = tensorboard.RETURN, x: str = ENV_FRAMES) -> pd.DataFrame:
    """Returns a table of curves.

    Args:
      runs: Run directories.
      metric: `tensorboard.RETURN` is computed from the log of episodes: at each point, the mean of
        the last `EPISODES` of a task, then the mean over tasks. Other metrics are TensorBoard's.
      x: `ENV_FRAMES`, or `SECONDS` of training.

    Raises:
      UserError: If a directory holds no run, or a run lacks episodes or values of the metric.
    """
    tables = [
        _read_label(seeds, metric, x).assign(game=game, label=label)
        for game, labels in runs.items()
        for label, seeds in labels.items()
    ]
    return pd.concat(tables, ignore_index=True)[["game", "label", "seed", x, "value"]]


def _read_label(runs: Sequence[pathlib.Path], metric: str, x: str) -> pd.DataFrame:
    curves = [_read_run(run, metric) for run in runs]
    all_tasks = frozenset().union(*(curve.tasks for curve in curves))
    for run, curve in zip(runs, curves, strict=True):
        if missing := all_tasks - curve.tasks:
            raise errors.UserError(
                f"{run} holds no finished episode of {min(missing)}, unlike other seeds, so that "
                "their means do not compare. Leave the run out, or wait for an episode."
            )
    # Position of each curve's points on the x axis.
    positions = [
        curve.env_frames if x == ENV_FRAMES else np.interp(curve.env_frames, *wall_clock(run))
        for run, curve in zip(runs, curves, strict=True)
    ]
    grid = make_grid(max(p[0] for p in positions), min(p[-1] for p in positions))
    return pd.concat(
        pd.DataFrame({"seed": seed, x: grid, "value": np.interp(grid, position, curve.values)})
        for seed, (position, curve) in enumerate(zip(positions, curves, strict=True), 1)
    )


def make_grid(first: float, last: float) -> np.ndarray:
    """Returns the points of a curve, ascending: one point if seeds share no range."""
    return np.linspace(first, last, _POINTS) if first < last else np.array([float(first)])


def _read_run(run: pathlib.Path, metric: str) -> _Curve:
    run_directory.check_no_sweep(run)
    if not (run / "tensorboard").is_dir() and not (run / episode_log.FILE).exists():
        raise errors.UserError(f"{run} holds no run. Name a run directory.")
    if metric != tensorboard.RETURN:
        frames, values = tensorboard.read_scalars(run / "tensorboard", metric)
        if not len(frames):
            raise errors.UserError(f"{run} holds no values of {metric}.")
        return _Curve(frames, values)
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
    return _Curve(frames, np.mean(means, axis=0), frozenset(tasks))


def wall_clock(run: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
    """Returns env frames [n + 1] and the seconds of training [n + 1] until them, from 0 on.

    Raises:
      UserError: If the run has logged no seconds.
    """
    frames, seconds = tensorboard.read_scalars(run / "tensorboard", _WALL_SECONDS)
    if not len(frames):
        raise errors.UserError(
            f"{run} holds no values of {_WALL_SECONDS}. Wait for the first, or train for more env "
            "frames."
        )
    return np.append(0, frames), np.append(0.0, seconds)


def summarise(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Returns mean, 95% bootstrap interval and range over seeds.

    Args:
      table: Has columns `by`, `seed` and `value`; missing values do not count.
      by: Columns that identify a point; the last one is the position on the curve.

    Returns:
      The columns `by` and `SUMMARY`. The interval is missing for fewer than `MIN_INTERVAL_SEEDS`
      seeds.
    """
    *group, position = by
    parts = []
    for key, curve in table.groupby(group, sort=False):
        values = curve.pivot(index="seed", columns=position, values="value")
        values = values[list(dict.fromkeys(curve[position]))]  # in the order of the table
        part = pd.DataFrame(dict(zip(group, key, strict=True)), index=values.columns)
        part[SUMMARY] = summary(values.to_numpy(float))
        parts.append(part.reset_index()[[*by, *SUMMARY]])
    return pd.concat(parts, ignore_index=True)


def summary(values: np.ndarray) -> pd.DataFrame:
    """Returns the columns `SUMMARY` of values [seeds, points]; NaNs are missing seeds."""
    frame = pd.DataFrame(values)
    low, high = np.full((2, values.shape[1]), np.nan)
    complete = np.isfinite(values).all(axis=0)
    if len(values) >= MIN_INTERVAL_SEEDS and complete.any():
        low[complete], high[complete] = comparison.interval([values[:, complete]], np.mean)
    columns = (frame.mean(), low, high, frame.min(), frame.max(), frame.count())
    return pd.DataFrame(dict(zip(SUMMARY, columns, strict=True))).to_numpy()


def draw(axes: axes_module.Axes, table: pd.DataFrame, x: str, **style: object) -> None:
    """Draws the mean over seeds of each label of one game.

    The mean's 95% bootstrap interval is shaded. Two seeds are drawn as thin lines.

    Args:
      axes: Where to draw.
      table: Table of curves of one game.
      x: Column of the x axis.
      **style: Arguments of `seaborn.lineplot`.
    """
    order = list(dict.fromkeys(table["label"]))
    arguments = {
        "hue": "label", "style": "label", "hue_order": order, "style_order": order,
        "palette": "colorblind", "markers": False, "n_boot": 300, "seed": 0,
    } | style  # fmt: skip
    seeds = table.groupby("label")["seed"].transform("nunique")
    scaled = table.assign(**{x: table[x] / axis_unit(table, x)[0]})
    few = scaled[seeds < MIN_INTERVAL_SEEDS]
    seaborn.lineplot(scaled, x=x, y="value", ax=axes, errorbar=None, **arguments)
    if len(many := scaled[seeds >= MIN_INTERVAL_SEEDS]):
        seaborn.lineplot(
            many, x=x, y="value", ax=axes, errorbar=("ci", 95), legend=False, **arguments
        )
    if len(few) and few["seed"].nunique() > 1:
        seaborn.lineplot(
            few, x=x, y="value", ax=axes, units="seed", estimator=None, legend=False,
            linewidth=0.7, alpha=0.6, **{k: v for k, v in arguments.items() if k != "n_boot"},
        )  # fmt: skip
    axes.grid(alpha=0.3)
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel(axis_unit(table, x)[1])


def axis_unit(table: pd.DataFrame, x: str) -> tuple[float, str]:
    """Returns the unit of an axis and its label: minutes up to an hour, otherwise hours."""
    if x == ENV_FRAMES:
        return 1e6, "Million environment frames"
    is_short = table[x].max() <= 3_600
    return (60.0, "Minutes of training") if is_short else (3_600.0, "Hours of training")


def panels(rows: int, columns: int) -> tuple[figure_module.Figure, np.ndarray]:
    """Returns a figure and its axes [rows, columns]."""
    size = (max(5.5, 3.8 * columns), 3.2 * rows + 0.5)  # inches, including the legend
    return pyplot.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)


def save(figure: figure_module.Figure, target: pathlib.Path | IO[bytes], title: str = "") -> None:
    """Writes a figure whose axes share one legend, placed below them, and closes the figure.

    Args:
      figure: The figure.
      target: PNG file.
      title: Title of the legend.
    """
    handles: dict[str, object] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
        if legend := axes.get_legend():
            legend.remove()
    legend = figure.legend(
        handles.values(), handles, loc="outside lower center", ncols=2, frameon=False, title=title
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # a label may hold a dollar
    figure.savefig(target, dpi=130)
    pyplot.close(figure)


def write(
    runs: Runs, output: pathlib.Path, metric: str = tensorboard.RETURN, **style: object
) -> None:
    """Writes `curves.png` and `curves.csv`, over env frames, with a panel for each game.

    Args:
      runs: game -> label -> run directories of the seeds.
      output: Directory of the files.
      metric: Name of a scalar in TensorBoard.
      **style: Arguments of `draw`.

    Raises:
      UserError: If a run lacks values.
    """
    _write(runs, output, {ENV_FRAMES: "curves.csv"}, metric, style)


def write_with_time(runs: Runs, output: pathlib.Path, **style: object) -> None:
    """Writes `curves.png`, `by_frames.csv` and `by_time.csv`.

    The upper panels show returns over env frames, the lower ones over time of training.

    Raises:
      UserError: If a run lacks values.
    """
    _write(
        runs,
        output,
        {ENV_FRAMES: "by_frames.csv", SECONDS: "by_time.csv"},
        tensorboard.RETURN,
        style,
    )


def _write(
    runs: Runs,
    output: pathlib.Path,
    files: Mapping[str, str],
    metric: str,
    style: Mapping[str, object],
) -> None:
    figure, axes = panels(len(files), len(runs))
    for row, (x, name) in zip(axes, files.items(), strict=True):
        table = read(runs, metric, x)
        for panel, (game, curves) in zip(row, table.groupby("game", sort=False), strict=True):
            draw(panel, curves, x, **style)
            panel.set(title=game, ylabel=RETURN_LABEL if metric == tensorboard.RETURN else metric)
        write_csv(summarise(table, ("game", "label", x)), output / name)
    save(figure, output / "curves.png")


def write_csv(table: pd.DataFrame, path: pathlib.Path) -> None:
    """Writes a table with six significant digits; missing values are empty."""
    rounded = table.copy()
    for x, decimals in ((ENV_FRAMES, 0), (SECONDS, 2)):
        if x in rounded:
            rounded[x] = rounded[x].map(f"{{:.{decimals}f}}".format)
    rounded.to_csv(path, index=False, float_format="%.6g")

"""Figures of learning curves of several seeds."""

import functools
import io
import pathlib
from collections.abc import Iterable
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import seaborn
from matplotlib import axes as axes_module
from matplotlib import figure as figure_module
from matplotlib import pyplot

from laser_tf.plotting import tables
from laser_tf.scores import ranking, reference
from laser_tf.workdir import atomic, run_directory

INTERVAL = ("ci", 95)  # bootstrap interval of the mean, percent

matplotlib.use("Agg")


def draw(
    axes: axes_module.Axes,
    table: pd.DataFrame,
    x: str = tables.ENV_FRAMES,
    errorbar: tuple[str, float] | None = INTERVAL,
    labels: Iterable[str] = (),
) -> None:
    """Draws a line for each label, the mean over its rows at a point.

    Args:
      axes: Axes of the figure.
      table: Columns label, `x`, value and, for an interval, seed.
      x: Column of the x axis.
      errorbar: Shaded area as in seaborn. `INTERVAL` requires three seeds; fewer are thin lines.
      labels: Labels in the order of their colours; default: as in the table.
    """
    order = list(labels) or list(dict.fromkeys(table["label"]))
    unit, axis_label = _axis_unit(table, x)
    plot = functools.partial(
        seaborn.lineplot, x=x, y="value", hue="label", style="label", hue_order=order,
        style_order=order, palette="colorblind", ax=axes,
        marker="o" if table[x].nunique() == 1 else None,
    )  # fmt: skip
    scaled = table.assign(**{x: table[x] / unit})
    if errorbar != INTERVAL:
        plot(scaled, errorbar=errorbar)
    else:
        plot(scaled, errorbar=None)
        is_few = table.groupby("label")["seed"].transform("nunique") < tables.MIN_INTERVAL_SEEDS
        if not is_few.all():
            plot(scaled[~is_few], errorbar=INTERVAL, n_boot=300, seed=0, legend=False)
        if is_few.any():
            style = {"units": "seed", "estimator": None, "linewidth": 0.7, "alpha": 0.6}
            plot(scaled[is_few], legend=False, **style)
    axes.grid(alpha=0.3)
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel(axis_label)


def _axis_unit(table: pd.DataFrame, x: str) -> tuple[float, str]:
    """Returns the unit of an axis and its label: minutes up to an hour, otherwise hours."""
    if x == tables.ENV_FRAMES:
        return 1e6, "Million environment frames"
    is_short = table[x].max() <= 3_600
    return (60.0, "Minutes of training") if is_short else (3_600.0, "Hours of training")


def draw_panels(
    panels: Iterable[axes_module.Axes], table: pd.DataFrame, by: str, ylabel: str, **style: Any
) -> None:
    """Draws the rows of each value of column `by` in a panel; hides the panels that are left.

    A label has the same colour in all panels.
    """
    panels = iter(panels)
    labels = list(dict.fromkeys(table["label"]))
    for title, part in table.groupby(by, sort=False):
        axes = next(panels)
        draw(axes, part, labels=labels, **style)
        axes.set_title(title, parse_math=False)  # A title may hold a dollar.
        axes.set_ylabel(ylabel)
    for axes in panels:
        axes.set_axis_off()


def with_seed_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Returns the table with the number of seeds in each label, e.g. "LASER (3 seeds)"."""
    counts = table.groupby("label")["seed"].nunique()
    names = {
        label: f"{label} ({count} seeds)" if count > 1 else label for label, count in counts.items()
    }
    return table.assign(label=table["label"].map(names))


def make_panels(count: int, columns: int) -> tuple[figure_module.Figure, np.ndarray]:
    """Returns a figure and its axes [rows, at most `columns`], at least `count`."""
    columns = min(columns, count)
    rows = -(-count // columns)
    size = (max(5.5, 3.8 * columns), 3.2 * rows + 0.5)  # inches, including the legend
    return pyplot.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)


def save(figure: figure_module.Figure, path: pathlib.Path, title: str = "") -> None:
    """Writes a figure with one legend below all axes, which may have a title, and closes it."""
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
        text.set_parse_math(False)  # A label may hold a dollar.
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:], dpi=130)
    atomic.write(path, content.getvalue())
    pyplot.close(figure)


def metric_label(metric: str) -> str:
    """Returns the label of an axis."""
    return f"Episode return, mean of {tables.EPISODES}" if metric == tables.RETURN else metric


def write(
    runs: tables.Runs,
    output: pathlib.Path,
    metric: str = tables.RETURN,
    with_time: bool = False,
) -> dict[str, pd.DataFrame]:
    """Writes curves with a panel for each game; returns their tables by x axis. See `tables.read`.

    Args:
      runs: Run directories.
      output: Directory of `curves.png` and of `curves.csv`, over env frames.
      metric: Name of a scalar in TensorBoard.
      with_time: Whether a second row of panels is over time of training. The tables are then
        `by_frames.csv` and `by_time.csv`.
    """
    names = {tables.ENV_FRAMES: "curves"}
    if with_time:
        names = {tables.ENV_FRAMES: "by_frames", tables.SECONDS: "by_time"}
    curves = {x: tables.read(runs, metric, x) for x in names}
    figure, axes = make_panels(len(names) * len(runs), len(runs))
    for row, (x, table) in zip(axes, curves.items(), strict=True):
        draw_panels(row, table, "game", metric_label(metric), x=x)
        tables.write_csv(tables.summarise(table, ("game", "label", x)), output / f"{names[x]}.csv")
    save(figure, output / "curves.png")
    return curves


def write_agents(runs: tables.Runs, output: pathlib.Path) -> None:
    """Compares agents: writes curves over env frames and time, `agents.csv` and `standings.csv`.

    `agents.csv` holds the mean of the last `tables.EPISODES` returns at the env frames that all
    seeds have reached. It also holds the training time of the fastest seed.
    `standings.csv` compares agents over all games.
    """
    curves = write(runs, output, with_time=True)
    keys = ["game", "label"]
    final = curves[tables.ENV_FRAMES].groupby([*keys, "seed"], sort=False).last().reset_index()
    table = tables.summarise(final, (*keys, tables.ENV_FRAMES))
    seconds = curves[tables.SECONDS].groupby(keys)[tables.SECONDS].max().rename("training_seconds")
    tables.write_csv(table.join(seconds, keys), output / "agents.csv")
    labels = list(dict.fromkeys(table["label"]))
    scores = table.pivot(index="label", columns="game", values="mean").loc[labels]
    first_run = next(iter(next(iter(runs.values())).values()))[0]
    suite = run_directory.read_config(first_run)["environment"]["suite"]
    normalised = scores.apply(lambda game: reference.normalised(suite, game.name, game))
    tables.write_csv(ranking.standings(scores, normalised), output / "standings.csv")

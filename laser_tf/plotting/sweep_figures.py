"""Figures of a report of sweeps."""

from collections.abc import Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import colors, pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from laser_tf.plotting import curves, sweep_results, sweep_tables
from laser_tf.sweeps import lineage

_LEARNING_RATE = "learner.learning_rate"


def draw_conditions(results: sweep_results.Results, best: pd.DataFrame) -> Figure:
    """Draws each label's best member: mean over seeds, shaded from the worst to the best seed.

    `best` has the columns label, seed, env_frames and value.
    """
    figure, axes = _subplots(4.2)
    curves.draw(axes, curves.with_seed_counts(best), errorbar=("pi", 100))
    axes.set_ylabel(_score_label(results) + "\nbest member of the sweep")
    return figure


def draw_members(
    results: sweep_results.Results, curve: pd.DataFrame, order: pd.DataFrame
) -> tuple[Figure, str]:
    """Draws all members of one seed; returns the figure and the title of its legend.

    The legend has their hyper-parameters, best member first. `curve` has the columns member,
    env_frames and score; `order` is rows of `Results.members`.
    """
    names = [name for name in order.columns if "." in name]
    varied = [name for name in names if order[name].astype(str).nunique() > 1] or names
    labels = {
        row["member"]: ", ".join([row["member"], *(_format(row[name]) for name in varied)])
        for _, row in order.iterrows()
    }
    table = curve.assign(label=curve["member"].map(labels), value=curve["score"])
    figure, axes = _subplots(3.7 + 0.2 * len(labels))
    table = _ordered(table, "member", list(labels))
    curves.draw(axes, table, errorbar=None)
    axes.set_ylabel(_score_label(results))
    return figure, ", ".join(["member", *(name.rpartition(".")[2] for name in varied)])


def draw_diagnostics(table: pd.DataFrame, bucket: int) -> Figure:
    """Draws the mean over members and seeds of each metric, a panel each.

    `table` is rows of `sweep_tables.read_diagnostics`; `bucket` is the env frames in a point.
    """
    # A row describes the frames before it: the last one belongs to the last bucket.
    buckets = (table["env_frames"].astype(int) - 1).clip(lower=0) // bucket
    table = table.assign(env_frames=(buckets + 0.5) * bucket)
    table = _ordered(table, "metric", list(sweep_tables.DIAGNOSTICS))
    titles = {
        name: f"{name}, {unit}" if unit else name for name, unit in sweep_tables.DIAGNOSTICS.items()
    }
    figure, axes = curves.make_panels(table["metric"].nunique(), 2)
    table["metric"] = table["metric"].map(titles)
    curves.draw_panels(axes.flat, table, "metric", "", errorbar=None)
    return figure


def draw_population(decisions: Sequence[lineage.Record], env_frames: int) -> Figure:
    """Draws each member as a line coloured by its learning rate, with arrows to its copies.

    The lines end at `env_frames`, or at the last decision if that is later.
    """
    names = sorted({d.member for d in decisions} | {d.parent for d in decisions if d.parent})
    end = float(max(1, env_frames, *(d.env_frames for d in decisions)))
    tuned = [name for d in decisions for name in d.hyperparameters]
    coloured = _LEARNING_RATE if _LEARNING_RATE in tuned else next(iter(tuned), "")
    values = [d.hyperparameters.get(coloured, np.nan) for d in decisions]
    norm = colors.LogNorm(np.nanmin(values) / 1.1, np.nanmax(values) * 1.1) if coloured else None
    colour_map = matplotlib.colormaps["viridis"]
    figure, axes = _subplots(1.3 + 0.27 * len(names))
    for decision, value in zip(decisions, values, strict=True):
        # Up to the end: later decisions are drawn over it.
        colour = colour_map(norm(value)) if norm else "0.6"
        row = names.index(decision.member)
        axes.hlines(row, decision.env_frames / 1e6, end / 1e6, color=colour, linewidth=6)
    for copy in (d for d in decisions if d.parent):
        axes.annotate(
            "",
            xy=(copy.env_frames / 1e6, names.index(copy.member)),
            xytext=(copy.env_frames / 1e6, names.index(copy.parent)),
            arrowprops={"arrowstyle": "-|>", "color": "0.15", "linewidth": 0.9,
                        "shrinkA": 0, "shrinkB": 3, "connectionstyle": "arc3,rad=-0.12"},
        )  # fmt: skip
    axes.set_yticks(range(len(names)), names)
    axes.set(ylim=(len(names) - 0.4, -0.6), xlim=(0, end / 1e6), xlabel="Million env frames")
    if norm:
        bar = figure.colorbar(matplotlib.cm.ScalarMappable(norm, colour_map), ax=axes)
        bar.set_label(coloured.rpartition(".")[2].replace("_", " "))
    return figure


def _subplots(height: float) -> tuple[Figure, Axes]:
    return pyplot.subplots(figsize=(7, height), layout="constrained")


def _ordered(table: pd.DataFrame, column: str, order: list[str]) -> pd.DataFrame:
    return table.sort_values(column, key=lambda values: values.map(order.index), kind="stable")


def _score_label(results: sweep_results.Results) -> str:
    return f"median {results.measure}" if len(results.tasks) > 1 else results.measure


def _format(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)

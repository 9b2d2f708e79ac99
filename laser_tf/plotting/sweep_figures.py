"""Figures of a report of sweeps, each as the bytes of a PNG."""

import io
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd

matplotlib.use("Agg")

import seaborn
from matplotlib import axes as axes_module
from matplotlib import colors, figure, pyplot

from laser_tf.plotting import curves, sweep_results
from laser_tf.plotting import diagnostics as diagnostics_module
from laser_tf.sweeps import lineage

_LEARNING_RATE = "learner.learning_rate"


def conditions(results: sweep_results.Results, best: pd.DataFrame) -> bytes:
    """Draws each label's best member: mean over seeds, shaded from the worst to the best seed.

    Args:
      results: Results of a suite.
      best: Columns label, seed, env_frames, value.
    """
    picture, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    counts = best.groupby("label")["seed"].nunique()
    labels = {label: f"{label} ({count} seeds)" for label, count in counts.items()}
    _lines(axes, best.assign(label=best["label"].map(labels)), errorbar=("pi", 100))
    axes.set_ylabel(_score_label(results) + "\nbest member of the sweep")
    return _png(picture)


def members(results: sweep_results.Results, curve: pd.DataFrame, order: pd.DataFrame) -> bytes:
    """Draws all members of one seed, in the legend by their hyper-parameters, best first.

    Args:
      results: Results of a suite.
      curve: Columns member, env_frames, score.
      order: Rows of `Results.members`, best first.
    """
    names = [name for name in order.columns if "." in name]
    varied = [name for name in names if order[name].astype(str).nunique() > 1] or names
    labels = {
        row["member"]: ", ".join([row["member"], *(_format(row[name]) for name in varied)])
        for _, row in order.iterrows()
    }
    table = curve.assign(label=curve["member"].map(labels), value=curve["score"])
    drawn = [label for label in labels.values() if label in set(table["label"])]
    picture, axes = pyplot.subplots(figsize=(7, 3.7 + 0.2 * len(labels)), layout="constrained")
    _lines(axes, table, hue_order=drawn, errorbar=None)
    axes.set_ylabel(_score_label(results))
    title = ", ".join(["member", *(name.rpartition(".")[2] for name in varied)])
    return _png(picture, title=title)


def diagnostics(table: pd.DataFrame) -> bytes:
    """Draws a panel for each metric: columns label, metric, env_frames, value."""
    metrics = [name for name in diagnostics_module.UNITS if name in set(table["metric"])]
    picture, axes = curves.panels(-(-len(metrics) // 2), 2)
    for panel, metric in zip(axes.flat, metrics, strict=False):
        _lines(panel, table[table["metric"] == metric], errorbar=None)
        unit = diagnostics_module.UNITS[metric]
        panel.set_title(f"{metric}, {unit}" if unit else metric, fontsize=10)
        panel.set_ylabel("")
    for panel in axes.flat[len(metrics) :]:
        panel.set_axis_off()
    return _png(picture)


def population(decisions: Sequence[lineage.Record], env_frames: int) -> bytes:
    """Draws each member as a line coloured by its learning rate, with arrows to its copies.

    Args:
      decisions: Records of the population.
      env_frames: Env frames that the members have reached.
    """
    names = sorted({d.member for d in decisions} | {d.parent for d in decisions if d.parent})
    end = float(max(1, env_frames, *(d.env_frames for d in decisions)))
    tuned = [name for d in decisions for name in d.hyperparameters]
    coloured = _LEARNING_RATE if _LEARNING_RATE in tuned else next(iter(tuned), "")
    values = [d.hyperparameters.get(coloured, np.nan) for d in decisions]
    positive = [value for value in values if np.isfinite(value) and value > 0]
    norm = colors.LogNorm(min(positive) / 1.1, max(positive) * 1.1) if positive else None
    colour_map = matplotlib.colormaps["viridis"]
    picture, axes = pyplot.subplots(figsize=(7, 1.3 + 0.27 * len(names)), layout="constrained")
    for decision, value in zip(decisions, values, strict=True):
        # Up to the end: later decisions are drawn over it.
        colour = colour_map(norm(value)) if norm and np.isfinite(value) else "0.6"
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
        bar = picture.colorbar(matplotlib.cm.ScalarMappable(norm, colour_map), ax=axes)
        bar.set_label(coloured.rpartition(".")[2].replace("_", " "))
    return _png(picture)


def _lines(axes: axes_module.Axes, table: pd.DataFrame, **style: Any) -> None:
    scaled = table.assign(env_frames=table["env_frames"] / 1e6)
    marker = "o" if table["env_frames"].nunique() == 1 else None
    seaborn.lineplot(
        scaled, x="env_frames", y="value", hue="label", style="label", ax=axes,
        palette="colorblind", marker=marker, **style,
    )  # fmt: skip
    axes.set_xlabel("Million env frames")
    axes.grid(alpha=0.3)


def _score_label(results: sweep_results.Results) -> str:
    return f"median {results.measure}" if len(results.tasks) > 1 else results.measure


def _format(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _png(picture: figure.Figure, title: str = "") -> bytes:
    """Returns the PNG of a figure whose axes share one legend, and closes the figure."""
    buffer = io.BytesIO()
    curves.save(picture, buffer, title)
    return buffer.getvalue()

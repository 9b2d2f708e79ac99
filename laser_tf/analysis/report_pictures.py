"""The report's pictures, each as the bytes of a PNG. Readable on a phone and without colours."""

import contextlib
import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")

from matplotlib import axes as axes_module
from matplotlib import colors, figure, pyplot

from laser_tf.analysis import report_text, sweep_diagnostics, sweep_results
from laser_tf.sweeps import lineage

# Okabe and Ito's, told apart by colour-blind eyes too; its yellow is too light on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", "--", ":", "-.")
_WIDTH = 7.0  # inches
_LEGEND_ROW = 0.21  # inches
_UNITS = ((1e9, "billion "), (1e6, "million "), (1e3, "thousand "), (1.0, ""))
_LEARNING_RATE = "learner.learning_rate"


def conditions(results: sweep_results.SuiteResults) -> bytes:
    """Each label's mean over replicas, the best and the worst replica shaded."""
    with _figure(len(results.conditions)) as (picture, axes):
        limit = _end([c.curve.mean for c in results.conditions], results.protocol)
        for index, condition in enumerate(results.conditions):
            if np.isfinite(condition.curve.mean).any():
                _draw_range(axes, results.protocol, condition, _style(index), limit)
        _label_axes(axes, limit)
        axes.set_ylabel(_wrapped(_score_name(results.protocol), "best agent of the sweep"))
        _legend(picture, axes)
        return _png(picture)


def _style(index: int) -> dict[str, str]:
    """How a line is told from others: by its colour, and by its dashes where colours repeat."""
    return {
        "color": _COLOURS[index % len(_COLOURS)],
        "linestyle": _DASHES[index // len(_COLOURS) % len(_DASHES)],
    }


def _draw_range(
    axes: axes_module.Axes,
    protocol: sweep_results.Protocol,
    condition: sweep_results.Condition,
    style: Mapping[str, str],
    limit: float,
) -> None:
    curve = condition.curve
    there = np.isfinite(curve.mean)
    frames = protocol.env_frames(len(curve.mean))[there] / _unit(limit)[0]
    scale = 100 if protocol.is_normalised else 1
    worst, best, mean = (scale * values[there] for values in (curve.worst, curve.best, curve.mean))
    count = len(condition.replicas)
    label = f"{_spoken(condition.label)} ({count} replica{'s' * (count > 1)})"
    axes.fill_between(frames, worst, best, color=style["color"], alpha=0.2, linewidth=0)
    # Where not all replicas have come, the mean is of others than before: thin.
    axes.plot(frames, mean, color=style["color"], linewidth=0.9, linestyle="--")
    whole = curve.replicas[there] == count
    marker = "o" if whole.sum() == 1 else None
    axes.plot(
        frames, np.where(whole, mean, np.nan), linewidth=2, label=label, marker=marker, **style
    )


def agents(protocol: sweep_results.Protocol, replica: sweep_results.Replica) -> bytes:
    """All agents of a sweep, in the legend by their hyper-parameters, best first."""
    names = report_text.hyperparameter_names(replica.agents)
    order = sorted(range(len(replica.agents)), key=lambda k: -_sortable(replica.agents[k].score))
    with _figure(len(order) + 1) as (picture, axes):
        limit = _end([agent.curve for agent in replica.agents], protocol)
        for k in order:
            agent = replica.agents[k]
            values = [report_text.format_value(agent.hyperparameters.get(name)) for name in names]
            there = np.isfinite(agent.curve)
            frames = protocol.env_frames(len(agent.curve))[there] / _unit(limit)[0]
            axes.plot(
                frames,
                (100 if protocol.is_normalised else 1) * agent.curve[there],
                label=f"{agent.name}: {', '.join(values)}" if values else agent.name,
                marker="o" if there.sum() == 1 else None,
                linewidth=1.4,
                **_style(k),
            )
        _label_axes(axes, limit)
        axes.set_ylabel(_wrapped(_score_name(protocol), ""))
        _legend(picture, axes, title=", ".join(map(report_text.short_name, names)))
        return _png(picture)


def diagnostics(
    protocol: sweep_results.Protocol, curves: Mapping[str, Mapping[str, np.ndarray]]
) -> bytes:
    """Small pictures of each diagnostic; `curves` are label -> name -> [K]."""
    names = list(dict.fromkeys(itertools.chain.from_iterable(curves.values())))
    rows = -(-len(names) // 2)
    size = (_WIDTH, 2.1 * rows + _LEGEND_ROW * len(curves) + 0.3)
    picture, grid = pyplot.subplots(rows, 2, figsize=size, layout="constrained", squeeze=False)
    limit = _end([c for of_label in curves.values() for c in of_label.values()], protocol)
    for axes, name in itertools.zip_longest(grid.flat, names):
        if name is None:
            axes.set_axis_off()
            continue
        for index, (label, of_label) in enumerate(curves.items()):
            if name in of_label:  # a label keeps its colour where others have no value
                frames = protocol.env_frames(len(of_label[name])) / _unit(limit)[0]
                axes.plot(frames, of_label[name], label=_spoken(label), **_style(index))
        unit = sweep_diagnostics.UNITS[name]
        axes.set_title(f"{name}, {unit}" if unit else name, fontsize=10)
        _label_axes(axes, limit)
    for axes in grid[:-1].flat:
        axes.set_xlabel("")
    _legend(picture, *grid.flat)
    try:
        return _png(picture)
    finally:
        pyplot.close(picture)


def population(decisions: Sequence[lineage.Record], env_frames: int) -> bytes:
    """Each agent's life as a line, coloured by its learning rate, and arrows to its copies.

    `env_frames` is how far the agents have come, by their last episodes.
    """
    names = sorted({d.agent for d in decisions} | {d.parent for d in decisions if d.parent})
    end = float(max(1, env_frames, *(d.env_frames for d in decisions)))
    tuned = [name for d in decisions for name in d.hyperparameters]
    coloured = _LEARNING_RATE if _LEARNING_RATE in tuned else next(iter(tuned), None)
    values = [d.hyperparameters.get(coloured, np.nan) for d in decisions]
    norm, colour_map = _colour_scale(values)
    with _figure(0, height=1.3 + 0.27 * len(names)) as (picture, axes):
        unit, name_of_unit = _unit(end)
        for name in names:
            _draw_life(axes, names.index(name), [d for d in decisions if d.agent == name],
                       coloured, end, norm, colour_map)  # fmt: skip
        for copy in (d for d in decisions if d.parent):
            axes.annotate(
                "",
                xy=(copy.env_frames / unit, names.index(copy.agent)),
                xytext=(copy.env_frames / unit, names.index(copy.parent)),
                arrowprops={"arrowstyle": "-|>", "color": "0.15", "linewidth": 0.9,
                            "shrinkA": 0, "shrinkB": 3, "connectionstyle": "arc3,rad=-0.12"},
            )  # fmt: skip
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlabel(f"{name_of_unit}env frames")
        axes.set_xlim(0, end / unit)
        axes.grid(axis="x", alpha=0.3)
        if norm:
            bar = picture.colorbar(matplotlib.cm.ScalarMappable(norm, colour_map), ax=axes)
            bar.set_label(report_text.short_name(coloured))
            ticks = np.geomspace(norm.vmin, norm.vmax, 5)
            bar.set_ticks(ticks, labels=[f"{tick:.2g}" for tick in ticks])
            bar.ax.minorticks_off()
        return _png(picture)


def _draw_life(
    axes: axes_module.Axes,
    row: int,
    decisions: list[lineage.Record],
    coloured: str | None,
    end: float,
    norm: colors.Normalize | None,
    colour_map: colors.Colormap,
) -> None:
    unit = _unit(end)[0]
    for decision in decisions:  # to the end: what comes later is drawn over it, without gaps
        value = decision.hyperparameters.get(coloured, np.nan)
        colour = colour_map(norm(value)) if norm and np.isfinite(value) else "0.6"
        axes.hlines(row, decision.env_frames / unit, end / unit, color=colour, linewidth=6)


def _colour_scale(values: Sequence[float]) -> tuple[colors.Normalize | None, colors.Colormap]:
    """Logarithmic, since tuning multiplies; None where there is nothing to colour."""
    shades = colors.ListedColormap(matplotlib.colormaps["viridis"](np.linspace(0, 0.93, 256)))
    positive = [value for value in values if np.isfinite(value) and value > 0]
    if not positive:
        return None, shades
    low, high = min(positive), max(positive)
    return colors.LogNorm(low / 1.1, high * 1.1), shades


@contextlib.contextmanager
def _figure(entries: int, height: float = 3.7) -> Iterator[tuple[figure.Figure, axes_module.Axes]]:
    """One picture with room for a legend of so many entries below it."""
    size = (_WIDTH, height + _LEGEND_ROW * -(-entries // _columns(entries)))
    picture, axes = pyplot.subplots(figsize=size, layout="constrained")
    try:
        yield picture, axes
    finally:
        pyplot.close(picture)


def _columns(entries: int) -> int:
    return 1 if entries <= 6 else 2


def _legend(picture: figure.Figure, *all_axes: axes_module.Axes, title: str = "") -> None:
    entries: dict[str, Any] = {}
    for axes in all_axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label.strip(), handle)
    if not entries:
        return
    legend = picture.legend(
        entries.values(), entries, loc="outside lower center", ncols=_columns(len(entries)),
        title=title or None, frameon=False, fontsize=10,
    )  # fmt: skip
    for text in (*legend.get_texts(), legend.get_title()):
        text.set_parse_math(False)  # a label may hold a dollar


def _spoken(label: str) -> str:
    """A label on one line and not beginning with the underscore that hides it from legends."""
    return f" {' '.join(label.split())}"


def _label_axes(axes: axes_module.Axes, limit: float) -> None:
    axes.set_xlabel(f"{_unit(limit)[1]}env frames")
    axes.set_xlim(0, limit / _unit(limit)[0])
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _end(curves: Sequence[np.ndarray], protocol: sweep_results.Protocol) -> float:
    """Env frames of the longest curve."""
    points = max((len(curve) for curve in curves), default=1)
    return float(max(1, points) * protocol.bucket * protocol.group)


def _unit(limit: float) -> tuple[float, str]:
    return next((unit for unit in _UNITS if limit >= unit[0]), _UNITS[-1])


def _score_name(protocol: sweep_results.Protocol) -> str:
    what = protocol.measure + (", %" if protocol.is_normalised else "")
    return f"median {what}" if len(protocol.tasks) > 1 else what


def _wrapped(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def _sortable(score: float) -> float:
    return score if np.isfinite(score) else -np.inf


def _png(picture: figure.Figure) -> bytes:
    buffer = io.BytesIO()
    picture.savefig(buffer, dpi=130, format="png")
    return buffer.getvalue()

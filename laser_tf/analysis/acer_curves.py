"""ACER's figures: learning curves by experience and by time, and with the seeds' deviation."""

import pathlib
from collections.abc import Iterable, Sequence

from matplotlib import axes as axes_module

from laser_tf.analysis import figure, game_curves, panels, seed_curves
from laser_tf.monitoring import tensorboard


def write_by_experience_and_time(runs: figure.Runs, output: pathlib.Path) -> None:
    """Figure 1: writes `curves.png`, `by_frames.csv` and `by_time.csv` to a folder.

    As in the paper a ratio has its colour, and is dashed without the trust region.

    Raises:
      UserError: if a run lacks values.
    """
    labels = dict.fromkeys(label for of_game in runs.values() for label in of_game)
    game_curves.write_by_frames_and_time(runs, output, _ratio_styles(labels))


def _ratio_styles(labels: Iterable[str]) -> game_curves.Styles:
    styles, colours = {}, {}
    for label in labels:
        ratio, _, trust = label.partition(", ")
        colour = colours.setdefault(ratio, f"C{len(colours)}")
        styles[label] = {"color": colour, "linestyle": "-" if trust else "--"}
    return styles


def write_with_deviations(runs: figure.Runs, output: pathlib.Path) -> None:
    """Figure 2: writes `curves.png` and `curves.csv`, mean and standard deviation of the seeds.

    Raises:
      UserError: if a run lacks values.
    """
    rows = []
    with panels.drawn(output / "curves.png", 1, len(runs)) as axes:
        for panel, (task, of_task) in zip(axes[0], runs.items(), strict=True):
            for label, of_label in of_task.items():
                rows += [[task, label, *row] for row in _draw_deviation(panel, label, of_label)]
            panel.set(title=task, xlabel=game_curves.ENV_FRAMES, ylabel=game_curves.RETURN)
            panel.locator_params(axis="x", nbins=5)
            panel.grid(alpha=0.3)
    columns = ("game", "label", "env_frames", *seed_curves.COLUMNS, "standard_deviation")
    panels.write_csv(output / "curves.csv", columns, rows)


def _draw_deviation(
    panel: axes_module.Axes, label: str, runs: Sequence[pathlib.Path]
) -> list[list]:
    """Draws a curve of figure 2; returns its rows of the CSV, without game and label."""
    frames, summary = seed_curves.read(runs, tensorboard.RETURN)
    deviation = summary.values.std(axis=0)
    (line,) = panel.plot(frames / 1e6, summary.mean, label=label)
    low, high = summary.mean - deviation, summary.mean + deviation
    panel.fill_between(frames / 1e6, low, high, alpha=0.2, color=line.get_color(), linewidth=0)
    rows = seed_curves.rows(frames, summary)
    return [[*row, f"{one:.3f}"] for row, one in zip(rows, deviation, strict=True)]

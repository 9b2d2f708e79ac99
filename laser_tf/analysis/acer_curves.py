"""ACER's figures: learning curves by experience and by time, and with the seeds' deviation."""

import pathlib
from collections.abc import Mapping, Sequence

from matplotlib import axes as axes_module

from laser_tf.analysis import figure, panels, seed_curves
from laser_tf.monitoring import tensorboard

_RETURN = f"Episode return, mean of {seed_curves.EPISODES}"


def write_by_experience_and_time(runs: figure.Runs, output: pathlib.Path) -> None:
    """Figure 1: writes `curves.png`, `by_frames.csv` and `by_time.csv` to a folder.

    A column for each game; above over env frames, below over hours of training. As in the paper
    a ratio has its colour, and is dashed without the trust region.

    Raises:
      UserError: if a run lacks values.
    """
    rows: dict[bool, list[list]] = {False: [], True: []}
    with panels.drawn(output / "curves.png", 2, len(runs)) as axes:
        for row, over_seconds in zip(axes, rows, strict=True):
            for panel, (game, of_game) in zip(row, runs.items(), strict=True):
                rows[over_seconds] += _draw_ratios(panel, game, of_game, over_seconds)
    for name, over_seconds in (("env_frames", False), ("seconds", True)):
        path = output / f"by_{'time' if over_seconds else 'frames'}.csv"
        columns = ("game", "label", name, *seed_curves.COLUMNS)
        panels.write_csv(path, columns, rows[over_seconds])


def _draw_ratios(
    panel: axes_module.Axes,
    game: str,
    of_game: Mapping[str, Sequence[pathlib.Path]],
    over_seconds: bool,
) -> list[list]:
    """Draws a panel of figure 1; returns its rows of the CSV."""
    rows, colours = [], {}
    for label, of_label in of_game.items():
        x, summary = seed_curves.read(of_label, tensorboard.RETURN, over_seconds=over_seconds)
        rows += [[game, label, *row] for row in seed_curves.rows(x, summary)]
        ratio, _, trust = label.partition(", ")
        colour = colours.setdefault(ratio, f"C{len(colours)}")
        seed_curves.draw(
            panel,
            x / (3_600 if over_seconds else 1e6),
            summary,
            label,
            color=colour,
            linestyle="-" if trust else "--",
        )
    panel.set(
        title=game,
        xlabel="Hours of training" if over_seconds else "Million environment frames",
        ylabel=_RETURN,
    )
    panel.locator_params(axis="x", nbins=5)
    return rows


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
            panel.set(title=task, xlabel="Million environment frames", ylabel=_RETURN)
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

"""Learning curves of a figure's runs: a panel for each game, a curve for each label, and a CSV."""

import pathlib
from collections.abc import Mapping, Sequence

from matplotlib import axes as axes_module

from laser_tf.analysis import figure, panels, seed_curves
from laser_tf.monitoring import tensorboard

RETURN = f"Episode return, mean of {seed_curves.EPISODES}"
ENV_FRAMES = "Million environment frames"
_DASHES = ("-", "--", "-.", ":")

Styles = Mapping[str, Mapping[str, str]]  # label -> of its line, as Matplotlib names them


def dashes(runs: figure.Runs) -> Styles:
    """Lines that are told apart without their colours, too."""
    labels = dict.fromkeys(label for of_game in runs.values() for label in of_game)
    return {
        label: {"linestyle": _DASHES[index % len(_DASHES)]} for index, label in enumerate(labels)
    }


def write_by_frames(runs: figure.Runs, output: pathlib.Path, column: str = "label") -> None:
    """Writes `curves.png` and `curves.csv` to a folder, over env frames.

    Args:
      runs: the folders of runs.
      output: where to write.
      column: what the CSV calls the labels.

    Raises:
      UserError: if a run lacks values.
    """
    rows, styles = [], dashes(runs)
    with panels.drawn(output / "curves.png", 1, len(runs)) as axes:
        for panel, (game, of_game) in zip(axes[0], runs.items(), strict=True):
            rows += _draw(panel, game, of_game, styles, over_seconds=False)
    columns = ("game", column, "env_frames", *seed_curves.COLUMNS)
    panels.write_csv(output / "curves.csv", columns, rows)


def write_by_frames_and_time(runs: figure.Runs, output: pathlib.Path, styles: Styles) -> None:
    """Writes `curves.png`, `by_frames.csv` and `by_time.csv` to a folder.

    A column for each game; above over env frames, below over time of training.

    Raises:
      UserError: if a run lacks values.
    """
    rows: dict[bool, list[list]] = {False: [], True: []}
    with panels.drawn(output / "curves.png", 2, len(runs)) as axes:
        for row, over_seconds in zip(axes, rows, strict=True):
            for panel, (game, of_game) in zip(row, runs.items(), strict=True):
                rows[over_seconds] += _draw(panel, game, of_game, styles, over_seconds=over_seconds)
    for name, over_seconds in (("env_frames", False), ("seconds", True)):
        path = output / f"by_{'time' if over_seconds else 'frames'}.csv"
        columns = ("game", "label", name, *seed_curves.COLUMNS)
        panels.write_csv(path, columns, rows[over_seconds])


def axis(last: float, *, over_seconds: bool) -> tuple[float, str]:
    """The unit and the name of an axis of so many env frames, or seconds: minutes up to an hour."""
    if not over_seconds:
        return 1e6, ENV_FRAMES
    return (60.0, "Minutes of training") if last <= 3_600 else (3_600.0, "Hours of training")


def _draw(
    panel: axes_module.Axes,
    game: str,
    of_game: Mapping[str, Sequence[pathlib.Path]],
    styles: Styles,
    *,
    over_seconds: bool,
) -> list[list]:
    """Draws a panel; returns its rows of the CSV."""
    curves = {
        label: seed_curves.read(of_label, tensorboard.RETURN, over_seconds=over_seconds)
        for label, of_label in of_game.items()
    }
    unit, name = axis(max(x[-1] for x, _ in curves.values()), over_seconds=over_seconds)
    rows = []
    for label, (x, summary) in curves.items():
        of_label = seed_curves.rows(x, summary, over_seconds=over_seconds)
        rows += [[game, label, *row] for row in of_label]
        seed_curves.draw(panel, x / unit, summary, label, **styles[label])
    panel.set(title=game, xlabel=name, ylabel=RETURN)
    panel.locator_params(axis="x", nbins=5)
    return rows

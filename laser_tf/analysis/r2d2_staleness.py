"""R2D2's figure 1: the staleness of core states by training strategy, and the learning curves."""

import logging
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import axes as axes_module

from laser_tf.analysis import figure, panels, seed_curves
from laser_tf.monitoring import tensorboard
from laser_tf.workdir import run_directory

_STATES = {"first": "staleness/delta_q_first", "last": "staleness/delta_q_last"}
_States = Mapping[str, seed_curves.Summary]  # keys of _STATES -> seeds


def write_discrepancies(runs: figure.Runs, output: pathlib.Path) -> None:
    """Figure 1b: writes `delta_q.png` and `delta_q.csv` to a folder.

    Raises:
      WorkdirError: if a run is missing.
    """
    found = {
        game: {label: discrepancies(of_label) for label, of_label in of_game.items()}
        for game, of_game in runs.items()
    }
    rows = [
        [game, label, state, *panels.cells(summary[:5]), summary.seeds]
        for game, of_game in found.items()
        for label, states in of_game.items()
        for state, summary in states.items()
    ]
    columns = ("game", "strategy", "state", *seed_curves.COLUMNS)
    panels.write_csv(output / "delta_q.csv", columns, rows)
    with panels.drawn(output / "delta_q.png", 1, len(found)) as axes:
        for panel, (game, of_game) in zip(axes[0], found.items(), strict=True):
            _draw_bars(panel, of_game)
            panel.set(title=game, ylabel="Q-value discrepancy")


def discrepancies(runs: Sequence[pathlib.Path]) -> _States:
    """Delta Q (section 3) at the first and the last state of replayed sequences.

    Of each run the mean over the second half of its env frames. With stored states and no burn-in
    it is zero at the first state: there both states that are compared are the stored one. A run
    whose episodes are shorter than its sequences has no value, and is left out with a warning.

    Raises:
      WorkdirError: if a run is missing.
    """
    return {state: _of_seeds(runs, metric) for state, metric in _STATES.items()}


def _of_seeds(runs: Sequence[pathlib.Path], metric: str) -> seed_curves.Summary:
    values = []
    for run in runs:
        budget = run_directory.read_config(run)["run"]["env_frames"]
        frames, of_run = tensorboard.read_scalars(run / "tensorboard", metric)
        late = of_run[frames > budget / 2]
        if len(late):
            values.append(late.mean())
        else:
            logging.warning("%s holds no %s after %d frames: left out", run, metric, budget // 2)
    return seed_curves.summarise(values) if values else seed_curves.NOTHING


def _draw_bars(axes: axes_module.Axes, strategies: Mapping[str, _States]) -> None:
    """A group of bars for each state, with a bar for each strategy and the seeds' range on it."""
    width = 0.8 / len(strategies)
    for index, (label, states) in enumerate(strategies.items()):
        means, lows, highs = np.array(
            [(summary.mean, summary.minimum, summary.maximum) for summary in states.values()]
        ).T
        axes.bar(
            np.arange(len(states)) + (index - (len(strategies) - 1) / 2) * width,
            means,
            width,
            yerr=(means - lows, highs - means),
            capsize=3,
            label=label,
        )
    axes.set_xticks(range(len(_STATES)), [f"{state} states" for state in _STATES])
    axes.set_xlim(-0.5, len(_STATES) - 0.5)
    axes.grid(alpha=0.3, axis="y")
    axes.set_axisbelow(True)

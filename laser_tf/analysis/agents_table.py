"""Agents side by side: what each returns on a game in the end, and how long it took."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from laser_tf.analysis import figure, panels, seed_curves, standings_table, wall_clock
from laser_tf.monitoring import tensorboard
from laser_tf.scores import ranking, reference
from laser_tf.workdir import run_directory


class Cell(NamedTuple):
    """One agent's seeds on one game."""

    env_frames: int  # up to which all seeds have come
    returns: seed_curves.Summary  # there, each the mean of the last `seed_curves.EPISODES`
    seconds: float  # of training, mean of the seeds


def write(runs: figure.Runs, output: pathlib.Path) -> None:
    """Writes `agents.csv` and `standings.csv` to a folder.

    The first has a row for each game and agent, the second one for each agent over all games, by
    mean and median normalised score, mean rank and Elo, of the mean over its seeds.

    Raises:
      UserError: if a run is missing or lacks values.
    """
    cells = {
        game: {label: _measure(of_label) for label, of_label in of_game.items()}
        for game, of_game in runs.items()
    }
    rows = [
        [game, label, cell.env_frames, *panels.cells(cell.returns[:5]), cell.returns.seeds]
        + panels.cells([cell.seconds])
        for game, of_game in cells.items()
        for label, cell in of_game.items()
    ]
    columns = ("game", "label", "env_frames", *seed_curves.COLUMNS, "training_seconds")
    panels.write_csv(output / "agents.csv", columns, rows)
    scores = {
        label: {game: float(of_game[label].returns.mean) for game, of_game in cells.items()}
        for label in next(iter(cells.values()))
    }
    standings = ranking.standings(scores, _normalised(runs, scores))
    panels.write_csv(
        output / "standings.csv", standings_table.COLUMNS, standings_table.rows(standings)
    )


def _measure(runs: Sequence[pathlib.Path]) -> Cell:
    frames, summary = seed_curves.read(runs, tensorboard.RETURN)
    # Of those frames, too, where a run is further than the others.
    seconds = float(np.mean([np.interp(frames[-1], *wall_clock.read(run)) for run in runs]))
    return Cell(int(frames[-1]), seed_curves.summarise(summary.values[:, -1]), seconds)


def _normalised(
    runs: figure.Runs, scores: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]] | None:
    """None where a game has no reference."""
    (any_run, *_) = next(iter(next(iter(runs.values())).values()))
    suite = run_directory.read_config(any_run)["environment"]["suite"]
    normalised = {}
    for label, of_label in scores.items():
        values = reference.normalised_scores(suite, of_label)
        if values is None:
            return None
        normalised[label] = values
    return normalised

"""Comparison of agents: final returns on each game, time of training, and standings."""

import pathlib
from collections.abc import Mapping

import pandas as pd

from laser_tf.plotting import curves
from laser_tf.scores import ranking, reference
from laser_tf.workdir import run_directory

STANDINGS = ["label", "median_normalised", "mean_normalised", "mean_rank", "elo"]


def write(runs: curves.Runs, output: pathlib.Path) -> None:
    """Writes curves over env frames and time, `agents.csv` and `standings.csv`.

    `agents.csv` has a row for each game and agent: the mean of the last `curves.EPISODES` returns
    at the env frames that all its seeds have reached. `standings.csv` has a row for each agent over
    all games.

    Raises:
      UserError: If a run is missing or lacks values.
    """
    curves.write_with_time(runs, output)
    by_frames = curves.read(runs)
    by_time = curves.read(runs, x=curves.SECONDS)
    keys = ["game", "label"]
    final = by_frames.groupby([*keys, "seed"], sort=False).last().reset_index()
    table = curves.summarise(final, (*keys, curves.ENV_FRAMES))
    seconds = by_time.groupby(keys, sort=False)[curves.SECONDS].max()
    table["training_seconds"] = [seconds[tuple(row)] for row in table[keys].to_numpy()]
    curves.write_csv(table, output / "agents.csv")
    means = table.pivot(index="label", columns="game", values="mean")
    scores = means.loc[list(dict.fromkeys(table["label"]))].to_dict("index")
    curves.write_csv(standings(scores, _normalised(runs, scores)), output / "standings.csv")


def standings(
    scores: Mapping[str, Mapping[str, float]],
    normalised: Mapping[str, Mapping[str, float]] | None,
) -> pd.DataFrame:
    """Returns the columns `STANDINGS`, best mean rank first.

    Args:
      scores: Label -> task -> score, of the same tasks for each label.
      normalised: The same scores, normalised; None without references.
    """
    rows = [(label, *row) for label, row in ranking.standings(scores, normalised).items()]
    table = pd.DataFrame(rows, columns=STANDINGS)
    return table.astype(dict.fromkeys(STANDINGS[1:], float))


def _normalised(
    runs: curves.Runs, scores: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]] | None:
    """Returns normalised scores; None if a game has no reference."""
    first_run = next(iter(next(iter(runs.values())).values()))[0]
    suite = run_directory.read_config(first_run)["environment"]["suite"]
    normalised = {
        label: reference.normalised_scores(suite, games) for label, games in scores.items()
    }
    return None if None in normalised.values() else normalised

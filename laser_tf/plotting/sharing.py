"""Learning next to members that collapse: curves, every member, and conditions.

The normal members of a sweep are those with its lowest learning rate; the others are their
companions. Returns are those of the environment itself: `environment.reward_offset`, which adds to
the reward of each step, is subtracted.
"""

import pathlib

import numpy as np
import pandas as pd

from laser_tf import errors
from laser_tf.plotting import curves, sweep_tables, tables
from laser_tf.scores import aggregates

_LEARNING_RATE = "learner.learning_rate"
_OFFSET_ENDING = ", +1 a step"  # end of a label with a reward offset
_KEYS = ["condition", "reward_offset", "seed", "member", "kind", "learning_rate"]
_POINTS = 100


def write(runs: tables.Runs, output: pathlib.Path, failed_below: float) -> None:
    """Writes `sharing.png`, `members.csv` and `conditions.csv`.

    `runs` has one task. A seed counts as failed if the mean return of its normal members is lower
    than `failed_below`.

    Raises:
      UserError: If a sweep is missing, or a member has no finished episode.
    """
    (labels,) = runs.values()
    sweeps = [
        found._replace(label=label)
        for label, folders in labels.items()
        for folder in folders
        for found in sweep_tables.find(folder)[0]
    ]
    episodes = pd.concat([_read_episodes(sweep) for sweep in sweeps], ignore_index=True)
    grouped = episodes.groupby(["label", *_KEYS], sort=False)
    members = grouped.agg(
        env_frames=("env_frames", "max"),
        num_episodes=("return", "count"),
        mean_return=("return", lambda returns: returns.tail(tables.EPISODES).mean()),
    ).reset_index()
    measures = sweep_tables.measures(sweep_tables.read_diagnostics(sweeps))
    table = members.join(measures, sweep_tables.KEYS).drop(columns="label")
    tables.write_csv(table, output / "members.csv")
    keys = ["condition", "reward_offset", "kind"]
    means = members.groupby([*keys, "seed"], sort=False)["mean_return"].mean()
    summary = tables.summarise(means.rename("value").reset_index(), keys)
    failed = (means < failed_below).groupby(keys, sort=False).sum()
    summary[f"seeds_below_{failed_below:g}"] = failed.to_numpy()
    tables.write_csv(summary, output / "conditions.csv")
    _draw(episodes, output / "sharing.png")


def _read_episodes(sweep: sweep_tables.Sweep) -> pd.DataFrame:
    """Returns the episodes of a sweep with the columns `_KEYS` and label."""
    episodes = sweep.episodes
    if silent := sorted(sweep.members.keys() - set(episodes["member"])):
        raise errors.UserError(
            f"{sweep.workdir / silent[0]} holds no finished episode. Wait for one, or train for "
            "more env frames."
        )
    offset = sweep.settings.get("environment.reward_offset", 0.0)
    rates = {name: values[_LEARNING_RATE] for name, values in sweep.members.items()}
    rate = episodes["member"].map(rates)
    columns = {
        "return": episodes["return"] - offset * episodes["length"],
        "label": sweep.label,
        "condition": sweep.label.removesuffix(_OFFSET_ENDING),
        "reward_offset": offset,
        "seed": sweep.seed,
        "kind": np.where(rate == min(rates.values()), "normal", "companion"),
        "learning_rate": rate,
    }
    return episodes.assign(**columns)


def _draw(episodes: pd.DataFrame, path: pathlib.Path) -> None:
    """Draws the mean over the members of a kind, a column of panels for each reward offset."""
    frames = episodes.groupby(["label", "seed", "member"])["env_frames"]
    start, end = frames.min().max(), frames.max().min()
    grid = np.linspace(start, max(start, end), _POINTS)
    parts = []
    for keys, part in episodes.groupby(_KEYS, sort=False):
        returns = aggregates.trailing_means(
            part["env_frames"].to_numpy(), part["return"].to_numpy(), grid, tables.EPISODES
        )
        columns = dict(zip(_KEYS, keys, strict=True)) | {"env_frames": grid, "value": returns}
        parts.append(pd.DataFrame(columns))
    by = ["kind", "reward_offset", "condition", "seed", "env_frames"]
    table = pd.concat(parts).groupby(by, sort=False)["value"].mean().reset_index()
    table = table.rename(columns={"condition": "label"})
    offsets = table["reward_offset"].map("{:g}".format)
    table["panel"] = table["kind"] + " members, reward offset " + offsets
    table = table.sort_values(["kind", "reward_offset"], ascending=[False, True], kind="stable")
    figure, axes = curves.make_panels(table["panel"].nunique(), table["reward_offset"].nunique())
    curves.draw_panels(axes.flat, table, "panel", curves.metric_label(tables.RETURN))
    curves.save(figure, path)

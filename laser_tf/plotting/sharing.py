"""Learning next to members that collapse: curves, every member, and conditions.

The normal members of a sweep are those with its lowest learning rate; the others are their
companions. Returns are those of the environment itself: `environment.reward_offset`, which adds to
the reward of each step, is subtracted.
"""

import pathlib

import numpy as np
import pandas as pd

from laser_tf.monitoring import episode_log
from laser_tf.plotting import curves, diagnostics, sweep_results
from laser_tf.scores import aggregates
from laser_tf.workdir import run_directory

_LEARNING_RATE = "learner.learning_rate"
_KINDS = ("normal", "companion")
_OFFSET_ENDING = ", +1 a step"  # end of a label with a reward offset
_POINTS = 100


def write(runs: curves.Runs, output: pathlib.Path, failed_below: float) -> None:
    """Writes `sharing.png`, `members.csv` and `conditions.csv`.

    Args:
      runs: One task; its sweeps by label, one for each seed.
      output: Directory.
      failed_below: Mean return of the normal members below which a seed counts as failed.

    Raises:
      UserError: If a sweep is missing, or a member has no finished episode.
    """
    (sweeps,) = runs.values()
    members = [
        row
        for label, folders in sweeps.items()
        for folder in folders
        for row in _read_sweep(label, folder)
    ]
    table = pd.DataFrame(members)
    episodes = table.pop("episodes")
    curves.write_csv(table, output / "members.csv")
    keys = ["condition", "reward_offset", "kind"]
    means = table.groupby([*keys, "seed"], sort=False)["mean_return"].mean()
    means = means.rename("value").reset_index()
    summary = curves.summarise(means.assign(all=0), (*keys, "all")).drop(columns="all")
    failed = means.assign(failed=means["value"] < failed_below)
    counts = failed.groupby(keys, sort=False)["failed"].sum()
    summary[f"seeds_below_{failed_below:g}"] = counts.to_numpy()
    curves.write_csv(summary, output / "conditions.csv")
    _draw(table.assign(episodes=episodes), output / "sharing.png")


def _read_sweep(label: str, folder: pathlib.Path) -> list[dict[str, object]]:
    (sweep, *_), _ = sweep_results.find(folder)
    lowest = min(member.hyperparameters[_LEARNING_RATE] for member in sweep.members)
    return [_read_member(label, sweep.seed, member, lowest) for member in sweep.members]


def _read_member(
    label: str, seed: int, member: sweep_results.Member, lowest: float
) -> dict[str, object]:
    episode_log.check(member.workdir, member.episodes)
    (episodes,) = member.episodes.values()
    environment = run_directory.read_config(member.workdir)["environment"]
    offset = environment.get("reward_offset", 0.0)
    rate = member.hyperparameters[_LEARNING_RATE]
    returns = episodes.returns - offset * episodes.lengths
    return {
        "condition": label.removesuffix(_OFFSET_ENDING),
        "reward_offset": offset,
        "seed": seed,
        "member": member.name,
        "kind": _KINDS[rate != lowest],
        "learning_rate": rate,
        "env_frames": member.env_frames,
        "num_episodes": len(returns),
        "mean_return": returns[-curves.EPISODES :].mean(),
        **diagnostics.measures([member.workdir]),
        "episodes": (episodes.env_frames, returns),
    }


def _draw(members: pd.DataFrame, path: pathlib.Path) -> None:
    """Draws the mean over the members of a kind, a column of panels for each reward offset."""
    offsets = list(dict.fromkeys(members["reward_offset"]))
    start = max(frames[0] for frames, _ in members["episodes"])
    end = min(frames[-1] for frames, _ in members["episodes"])
    grid = np.linspace(start, max(start, end), _POINTS)
    figure, axes = curves.panels(len(_KINDS), len(offsets))
    for column, offset in zip(axes.T, offsets, strict=True):
        for panel, kind in zip(column, _KINDS, strict=True):
            chosen = members[(members["reward_offset"] == offset) & (members["kind"] == kind)]
            parts = [
                pd.DataFrame(
                    {
                        "label": condition,
                        "seed": seed,
                        curves.ENV_FRAMES: grid,
                        "value": np.mean(
                            [
                                aggregates.trailing_means(frames, returns, grid, curves.EPISODES)
                                for frames, returns in group["episodes"]
                            ],
                            axis=0,
                        ),
                    }
                )
                for (condition, seed), group in chosen.groupby(["condition", "seed"], sort=False)
            ]
            curves.draw(panel, pd.concat(parts, ignore_index=True), curves.ENV_FRAMES)
            rewards = f"reward offset {offset:g}" if offset else "rewards without an offset"
            panel.set(
                title=f"{kind} members, {rewards}",
                xlabel="Million environment frames of each member",
                ylabel=curves.RETURN_LABEL,
            )
    curves.save(figure, path)

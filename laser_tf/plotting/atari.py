"""LASER on Atari next to Dopamine's published agents, at equal numbers of env frames.

All returns, LASER's and the published ones, are means over the training episodes of the last
`reference.DOPAMINE_WINDOW` env frames.
"""

import itertools
import pathlib
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from laser_tf.monitoring import episode_log
from laser_tf.plotting import curves, tables
from laser_tf.scores import aggregates, comparison, reference

LABEL = "LASER"
MILESTONES = (1, 2, 4, 10, 20, 50)  # million env frames at which returns are compared
EPISODES_FILE = "episodes.csv.gz"

_PANEL_COLUMNS = 3
_MEASURES = (comparison.median, comparison.mean, comparison.interquartile_mean)


def write(runs: tables.Runs, output: pathlib.Path) -> None:
    """Writes a figure, three tables and the episodes behind them.

    - `curves.png` and `curves.csv`: the curve of each game.
    - `returns.csv`: returns at the `MILESTONES` that all runs have reached, or at the end of the
      shortest run if it has reached none.
    - `summary.csv`: aggregates of human-normalised returns over games.
    - `episodes.csv.gz`: all episodes.

    All `runs` have the label `LABEL`.

    Raises:
      UserError: If a run lacks episodes.
    """
    parts = [
        _read_run(game, number, run)
        for game, labels in runs.items()
        for number, run in enumerate(labels[LABEL], 1)
    ]
    episodes = pd.concat(parts, ignore_index=True)
    compression = {"method": "gzip", "mtime": 0}  # Equal episodes give equal bytes.
    episodes.to_csv(output / EPISODES_FILE, index=False, compression=compression)

    def grid(game: str) -> np.ndarray:
        own = episodes[episodes["game"] == game].groupby("run")
        return tables.make_grid(
            own["env_frames"].first().max(), own["trained_env_frames"].first().min()
        )

    table = _window_means(episodes, grid)
    _draw(table, output / "curves.png")
    by = ("game", "label", tables.ENV_FRAMES)
    tables.write_csv(tables.summarise(table, by), output / "curves.csv")
    reached = int(episodes["trained_env_frames"].min())
    milestones = [m * 10**6 for m in MILESTONES if m * 10**6 <= reached] or [reached]
    returns = _window_means(episodes, lambda _: np.array(milestones))
    published = _normalised(reference.dopamine_curves())
    summary = tables.summarise(returns, by)
    tables.write_csv(_add_published(summary, published), output / "returns.csv")
    rows = itertools.chain(*(_summary_rows(returns, published, m) for m in milestones))
    tables.write_csv(pd.DataFrame(rows), output / "summary.csv")


def _read_run(game: str, number: int, run: pathlib.Path) -> pd.DataFrame:
    tasks = episode_log.read(run)
    episode_log.check(run, tasks)
    (episodes,) = tasks.values()
    columns = {
        "game": game,
        "run": number,
        "trained_env_frames": int(tables.wall_clock(run)[0][-1]),
        "env_frames": episodes.env_frames,
        "return": episodes.returns,
    }
    return pd.DataFrame(columns)


def _window_means(episodes: pd.DataFrame, points: Callable[[str], np.ndarray]) -> pd.DataFrame:
    """Returns columns game, label, seed, env_frames, value and human_normalised.

    `points` returns the env frames at which the means of a game are taken.
    """
    parts = []
    for (game, seed), run in episodes.groupby(["game", "run"], sort=False):
        frames, returns = run["env_frames"].to_numpy(), run["return"].to_numpy()
        at = points(game)
        values = aggregates.window_means(frames, returns, at, reference.DOPAMINE_WINDOW)
        names = {"game": game, "label": LABEL, "seed": seed}
        parts.append(pd.DataFrame(names | {tables.ENV_FRAMES: at, "value": values}))
    return _normalised(pd.concat(parts, ignore_index=True))


def _normalised(table: pd.DataFrame) -> pd.DataFrame:
    """Adds the column human_normalised."""
    values = table.groupby("game")["value"].transform(
        lambda returns: reference.normalised("atari", returns.name, returns)
    )
    return table.assign(human_normalised=values)


def _draw(table: pd.DataFrame, path: pathlib.Path) -> None:
    games = list(dict.fromkeys(table["game"]))
    figure, axes = curves.make_panels(len(games), min(_PANEL_COLUMNS, len(games)))
    curves.draw_panels(axes.flat, table, "game", "Return, mean of a million frames")
    published = reference.dopamine_curves()
    first = published[tables.ENV_FRAMES].min()
    for panel, game in zip(axes.flat, games, strict=False):
        last = table.loc[table["game"] == game, tables.ENV_FRAMES].max()
        # The first point also shows the agents next to a shorter run.
        is_shown = (published["game"] == game) & (published[tables.ENV_FRAMES] <= max(last, first))
        for agent, points in published[is_shown].groupby("agent", sort=False):
            frames = points[tables.ENV_FRAMES] / 1e6
            panel.plot(frames, points["value"], "--", marker="o", markersize=3, label=agent)
    curves.save(figure, path)


def _add_published(summary: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Adds LASER's human-normalised returns to a summary, and those of the published agents."""
    table = _normalised(summary.assign(value=summary["mean"])).drop(columns="value")
    for agent in reference.DOPAMINE_AGENTS:
        name = agent.lower()
        columns = {"value": name, "human_normalised": f"{name}_human_normalised"}
        own = published[published["agent"] == agent].rename(columns=columns).drop(columns="agent")
        table = table.merge(own, "left", on=["game", tables.ENV_FRAMES])
    return table


def _summary_rows(
    returns: pd.DataFrame, published: pd.DataFrame, env_frames: int
) -> Sequence[dict[str, object]]:
    """Returns LASER's row and one for each published agent with values of all games."""
    returns, published = (
        table[table[tables.ENV_FRAMES] == env_frames].dropna(subset="human_normalised")
        for table in (returns, published)
    )
    table = returns.pivot(index="seed", columns="game", values="human_normalised")
    table = table.dropna(axis="columns")
    if table.empty:
        return []
    scores = table.to_numpy()
    rows = [_summary_row(env_frames, LABEL, scores)]
    agents = published.pivot(index="agent", columns="game", values="human_normalised")
    agents = agents.reindex(reference.DOPAMINE_AGENTS, columns=table.columns).dropna()
    for agent, values in agents.iterrows():
        others = values.to_numpy()[None]
        row = _summary_row(env_frames, agent, others) | {"seeds": reference.DOPAMINE_SEEDS}
        improvement = comparison.probability_of_improvement(scores, others)
        rows.append(row | _cells("probability_of_improvement", improvement))
    return rows


def _summary_row(env_frames: int, agent: str, scores: np.ndarray) -> dict[str, object]:
    seeds, games = scores.shape
    row = {"env_frames": env_frames, "agent": agent, "games": games, "seeds": seeds}
    for measure in _MEASURES:
        row |= _cells(measure.__name__, measure(scores))
    return row


def _cells(name: str, estimate: comparison.Estimate) -> dict[str, float]:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}

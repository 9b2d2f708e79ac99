"""LASER on Atari next to Dopamine's published agents, at equal numbers of env frames.

All returns, LASER's and the published ones, are means over the training episodes of the last
`reference.DOPAMINE_WINDOW` env frames.
"""

import gzip
import itertools
import logging
import pathlib
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

from laser_tf import errors
from laser_tf.monitoring import episode_log
from laser_tf.plotting import curves, tables
from laser_tf.scores import aggregates, comparison, reference
from laser_tf.workdir import atomic

LABEL = "LASER"
MILESTONES = (1, 2, 4, 10, 20, 50)  # million env frames at which returns are compared
EPISODES_FILE = "episodes.csv.gz"
ELSEWHERE = "elsewhere"  # subdirectory of the experiment with `EPISODES_FILE`s of other machines

_TYPES = {
    "game": str, "run": int, "trained_env_frames": int, "env_frames": int, "return": float,
}  # fmt: skip
_EPISODE = ["game", "env_frames", "return"]
_PANEL_COLUMNS = 3
_FIRST_POINT_FROM = 0.1  # fraction of its env frames
_MEASURES = (comparison.median, comparison.mean, comparison.interquartile_mean)


def write(runs: tables.Runs, output: pathlib.Path) -> None:
    """Writes a figure, three tables and the episodes behind them.

    `curves.png` and `curves.csv` show each game's curve. `returns.csv` holds the games' returns at
    the `MILESTONES` that all runs have reached (shorter runs: at their end), and `summary.csv` the
    aggregates of human-normalised returns over games. `episodes.csv.gz` holds all episodes. Files
    like it from other machines, in the directory `ELSEWHERE` next to `output`, are added.

    Args:
      runs: Game -> label -> one run per seed; there is one label.
      output: Directory of the report.

    Raises:
      UserError: If a run lacks episodes, or a file cannot be read.
    """
    own = [
        _read_run(game, number, run)
        for game, labels in runs.items()
        for number, run in enumerate(labels[LABEL], 1)
    ]
    files = sorted((output.parent / ELSEWHERE).glob("*.csv.gz"))
    parts = [pd.concat(own, ignore_index=True), *map(read_episodes, files)]
    episodes = join(parts)
    write_episodes(output / EPISODES_FILE, episodes)
    runs_by_game = episodes.groupby("game")

    def grid(game: str) -> np.ndarray:
        of_runs = runs_by_game.get_group(game).groupby("run")
        return tables.make_grid(
            of_runs["env_frames"].first().max(), of_runs["trained_env_frames"].first().min()
        )

    table = _window_means(episodes, grid)
    _draw(table, output / "curves.png")
    by = ("game", "label", tables.ENV_FRAMES)
    tables.write_csv(tables.summarise(table, by), output / "curves.csv")
    reached = int(episodes["trained_env_frames"].min())
    milestones = [m * 10**6 for m in MILESTONES if m * 10**6 <= reached] or [reached]
    returns = _window_means(episodes, lambda game: np.array(milestones))
    published = _normalised(reference.dopamine_curves())
    summary = tables.summarise(returns, by)
    tables.write_csv(_add_published(summary, published), output / "returns.csv")
    rows = itertools.chain(*(_summary_rows(returns, published, m) for m in milestones))
    tables.write_csv(pd.DataFrame(rows), output / "summary.csv")


def _read_run(game: str, number: int, run: pathlib.Path) -> pd.DataFrame:
    tasks = episode_log.read(run)
    episode_log.check(run, tasks)
    (episodes,) = tasks.values()
    trained = int(tables.wall_clock(run)[0][-1])
    values = (game, number, trained, episodes.env_frames, episodes.returns)
    return pd.DataFrame(dict(zip(_TYPES, values, strict=True)))


def read_episodes(path: pathlib.Path) -> pd.DataFrame:
    """Returns the table of a file of `write_episodes`.

    Raises:
      UserError: If the file cannot be read or is not such a file; the message names it.
    """
    try:
        table = pd.read_csv(path)
        if list(table.columns) != list(_TYPES) or table.empty:
            raise ValueError(f"columns must be {', '.join(_TYPES)}")
        table = table.astype(_TYPES)
    except (OSError, EOFError, ValueError, pd.errors.ParserError) as error:
        raise errors.UserError(
            f"cannot read {path}: {errors.first_line(error)}. Use an {EPISODES_FILE} of a report."
        ) from None
    if unknown := set(table["game"]) - set(reference.dopamine_curves()["game"]):
        raise errors.UserError(f"{path} holds {min(unknown)}, of which Dopamine has no curves.")
    return table


def write_episodes(path: pathlib.Path, episodes: pd.DataFrame) -> None:
    """Writes a table of episodes; a file with episodes that the table lacks is kept, renamed."""
    if path.exists():
        try:
            old = read_episodes(path)[_EPISODE]
            is_lost = len(old.merge(episodes[_EPISODE].drop_duplicates())) < len(old)
        except errors.UserError:
            is_lost = True
        if is_lost:
            number = 1 + len(list(path.parent.glob(f"*_{path.name}")))
            path.rename(kept := path.with_name(f"{number}_{path.name}"))
            logging.warning("Kept %s, whose episodes are not in the runs, as %s", path, kept)
    text = episodes.to_csv(index=False, lineterminator="\n")
    atomic.write(path, gzip.compress(text.encode(), mtime=0))  # equal episodes, equal bytes


def join(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Returns the runs of all parts, those of each game numbered from 1.

    Raises:
      UserError: If a run is in two parts, or games have different numbers of runs.
    """
    games: dict[str, list[pd.DataFrame]] = {}
    for part in parts:
        earlier = {game: tuple(seeds) for game, seeds in games.items()}
        for (game, _), run in part.groupby(["game", "run"], sort=False):
            if any(_is_same(run, other) for other in earlier.get(game, ())):
                raise errors.UserError(
                    f"a run of {game} is given twice. Remove a file from {ELSEWHERE}/, or the game."
                )
            seeds = games.setdefault(game, [])
            seeds.append(run.assign(run=1 + len(seeds)))
    counts = {game: len(seeds) for game, seeds in games.items()}
    if len(set(counts.values())) > 1:
        raise errors.UserError(
            f"all games must have the same number of runs, got {counts}. Add or remove runs."
        )
    return pd.concat(itertools.chain(*games.values()), ignore_index=True)


def _is_same(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Returns whether two tables are of one run, read at different times."""
    count = min(len(one), len(other))
    return np.array_equal(one[_EPISODE].iloc[:count], other[_EPISODE].iloc[:count])


def _window_means(episodes: pd.DataFrame, points: Callable[[str], np.ndarray]) -> pd.DataFrame:
    """Returns columns game, label, seed, env_frames, value and human_normalised.

    Args:
      episodes: Table of episodes.
      points: Game -> env frames at which the means are taken.
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
    for panel, game in zip(axes.flat, games, strict=False):
        last = table.loc[table["game"] == game, tables.ENV_FRAMES].max()
        own = published[(published["game"] == game) & is_shown(published[tables.ENV_FRAMES], last)]
        for agent in reference.DOPAMINE_AGENTS if len(own) else ():
            points = own[own["agent"] == agent]
            frames = points[tables.ENV_FRAMES] / 1e6
            panel.plot(frames, points["value"], "--", marker="o", markersize=3, label=agent)
    curves.save(figure, path)


def is_shown(points: pd.Series, last: float) -> pd.Series:
    """Returns whether points of a published curve are drawn: those up to the end of a run.

    The first point is drawn unless the run is far shorter.

    Args:
      points: Env frames of the points.
      last: Env frames of the run.
    """
    first = points.min()
    return points <= (max(last, first) if last >= _FIRST_POINT_FROM * first else last)


def _add_published(summary: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Adds to a summary of LASER's runs its and all agents' human-normalised returns."""
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

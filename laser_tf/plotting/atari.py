"""LASER on Atari next to Dopamine's published agents, at equal numbers of env frames.

All returns, own and published ones, are means over the training episodes of the last
`reference.DOPAMINE_WINDOW` env frames.
"""

import gzip
import itertools
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import axes as axes_module

from laser_tf.monitoring import episode_log
from laser_tf.plotting import curves, tables
from laser_tf.scores import aggregates, comparison, reference
from laser_tf.workdir import atomic

LABEL = "LASER"
MILESTONES = (1, 2, 4, 10, 20, 50)  # million env frames at which returns are compared
EPISODES_FILE = "episodes.csv.gz"

PANEL_COLUMNS = 3
_PUBLISHED_STYLES: Mapping[str, dict[str, str]] = {
    "DQN": {"color": "0.7", "marker": "v"},
    "Rainbow": {"color": "0.5", "marker": "s"},
    "IQN": {"color": "0.2", "marker": "o"},
}
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
    parts = [read_run(run, game, label, seed) for game, label, seed, run in tables.each(runs)]
    episodes = keep_episodes(parts, output)

    def grid(game: str) -> np.ndarray:
        own = episodes[episodes["game"] == game].groupby("run")
        return tables.make_grid(
            own["env_frames"].first().max(), own["trained_env_frames"].first().min()
        )

    table = window_means(episodes, grid)
    figure, axes = curves.make_panels(len(runs), PANEL_COLUMNS)
    draw_games(axes.flat, table)
    curves.save(figure, output / "curves.png")
    by = ("game", "label", tables.ENV_FRAMES)
    tables.write_csv(tables.summarise(table, by), output / "curves.csv")
    reached = int(episodes["trained_env_frames"].min())
    milestones = [m * 10**6 for m in MILESTONES if m * 10**6 <= reached] or [reached]
    returns = window_means(episodes, lambda _: np.array(milestones))
    published = normalised(reference.dopamine_curves())
    summary = tables.summarise(returns, by)
    tables.write_csv(add_published(summary, published), output / "returns.csv")
    rows = itertools.chain(*(_summary_rows(returns, published, m) for m in milestones))
    tables.write_csv(pd.DataFrame(rows), output / "summary.csv")


def read_run(run: pathlib.Path, game: str, label: str, number: int) -> pd.DataFrame:
    """Returns the episodes of a run; raises UserError if the run lacks episodes.

    Columns game, label, run (its number), trained_env_frames (of the run), env_frames and return.
    """
    tasks = episode_log.read(run)
    episode_log.check(run, tasks)
    (episodes,) = tasks.values()
    columns = {
        "game": game,
        "label": label,
        "run": number,
        "trained_env_frames": int(tables.wall_clock(run)[0][-1]),
        "env_frames": episodes.env_frames,
        "return": episodes.returns,
    }
    return pd.DataFrame(columns)


def keep_episodes(parts: Sequence[pd.DataFrame], output: pathlib.Path) -> pd.DataFrame:
    """Writes and returns the episodes of all runs."""
    episodes = pd.concat(parts, ignore_index=True)
    # Without the time, so that equal episodes give equal bytes.
    content = gzip.compress(episodes.to_csv(index=False).encode(), mtime=0)
    atomic.write(output / EPISODES_FILE, content)
    return episodes


def window_means(episodes: pd.DataFrame, points: Callable[[str], np.ndarray]) -> pd.DataFrame:
    """Returns columns game, label, seed, env_frames, value and human_normalised.

    `points` returns the env frames at which the means of a game are taken.
    """
    parts = []
    for (game, label, seed), run in episodes.groupby(["game", "label", "run"], sort=False):
        frames, returns = run["env_frames"].to_numpy(), run["return"].to_numpy()
        at = points(game)
        values = aggregates.window_means(frames, returns, at, reference.DOPAMINE_WINDOW)
        names = {"game": game, "label": label, "seed": seed}
        parts.append(pd.DataFrame(names | {tables.ENV_FRAMES: at, "value": values}))
    return normalised(pd.concat(parts, ignore_index=True))


def normalised(table: pd.DataFrame) -> pd.DataFrame:
    """Adds the column human_normalised of the column value."""
    values = table.groupby("game")["value"].transform(
        lambda returns: reference.normalised("atari", returns.name, returns)
    )
    return table.assign(human_normalised=values)


def draw_games(panels: Iterable[axes_module.Axes], table: pd.DataFrame) -> None:
    """Draws a panel for each game with the published agents; hides the panels that are left."""
    panels = list(panels)
    curves.draw_panels(panels, table, "game", "Return, mean of a million frames")
    published = reference.dopamine_curves()
    first = published[tables.ENV_FRAMES].min()
    for panel, game in zip(panels, dict.fromkeys(table["game"]), strict=False):
        last = table.loc[table["game"] == game, tables.ENV_FRAMES].max()
        # The first point also shows the agents next to a shorter run.
        is_shown = (published["game"] == game) & (published[tables.ENV_FRAMES] <= max(last, first))
        draw_published(panel, published[is_shown])


def draw_published(
    panel: axes_module.Axes, table: pd.DataFrame, name: str = "{}", **style: str
) -> None:
    """Draws points of the published agents, columns agent, env_frames and value.

    `name` is the template of a label, and `style` are properties of the lines.
    """
    for agent, points in table.groupby("agent", sort=False):
        frames = points[tables.ENV_FRAMES] / 1e6
        line = {"linestyle": "--", "markersize": 4, **_PUBLISHED_STYLES[agent], **style}
        panel.plot(frames, points["value"], label=name.format(agent), **line)


def add_published(summary: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Adds human-normalised returns to a summary of returns, and those of the published agents."""
    table = normalised(summary.assign(value=summary["mean"])).drop(columns="value")
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

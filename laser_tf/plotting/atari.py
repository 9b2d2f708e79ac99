"""LASER on Atari next to Dopamine's published agents, at equal numbers of env frames.

All returns, LASER's and the published ones, are means over the training episodes of the last
`dopamine.WINDOW` env frames.
"""

import logging
import pathlib
from collections.abc import Iterable

import numpy as np
import pandas as pd

from laser_tf import errors
from laser_tf.monitoring import episode_log
from laser_tf.plotting import curves
from laser_tf.scores import aggregates, comparison, dopamine, reference
from laser_tf.workdir import atomic

LABEL = "LASER"
MILESTONES = (1, 2, 4, 10, 20, 50)  # million env frames at which returns are compared
EPISODES_FILE = "episodes.csv.gz"
ELSEWHERE = "elsewhere"  # subdirectory of the experiment with `EPISODES_FILE`s of other machines

_COLUMNS = ["game", "run", "trained_env_frames", "env_frames", "return"]
_PANEL_COLUMNS = 3
_FIRST_POINT_FROM = 0.1  # fraction of its env frames
_MEASURES = (comparison.median, comparison.mean, comparison.interquartile_mean)


def write(runs: curves.Runs, output: pathlib.Path) -> None:
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
    parts = [_read_runs(runs)]
    parts += [read_episodes(path) for path in sorted((output.parent / ELSEWHERE).glob("*.csv.gz"))]
    episodes = join(parts)
    write_episodes(output / EPISODES_FILE, episodes)
    table = _curve_table(episodes)
    _draw(table, output / "curves.png")
    curves.write_csv(
        curves.summarise(table, ("game", "label", curves.ENV_FRAMES)), output / "curves.csv"
    )
    reached = int(episodes.groupby(["game", "run"])["trained_env_frames"].first().min())
    milestones = [m * 10**6 for m in MILESTONES if m * 10**6 <= reached] or [reached]
    returns = _returns(episodes, milestones)
    curves.write_csv(_returns_table(returns), output / "returns.csv")
    summary = [row for frames in milestones for row in _summary_rows(returns, frames)]
    curves.write_csv(pd.DataFrame(summary), output / "summary.csv")


def _read_runs(runs: curves.Runs) -> pd.DataFrame:
    parts = []
    for game, labels in runs.items():
        for number, run in enumerate(labels[LABEL], 1):
            tasks = episode_log.read(run)
            episode_log.check(run, tasks)
            (episodes,) = tasks.values()
            trained = int(curves.wall_clock(run)[0][-1])
            columns = (game, number, trained, episodes.env_frames, episodes.returns)
            parts.append(pd.DataFrame(dict(zip(_COLUMNS, columns, strict=True))))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_COLUMNS)


def read_episodes(path: pathlib.Path) -> pd.DataFrame:
    """Returns the table of a file of `write_episodes`.

    Raises:
      UserError: If the file cannot be read or is not such a file; the message names it.
    """
    try:
        table = pd.read_csv(path)
        if list(table.columns) != _COLUMNS or table.empty:
            raise ValueError(f"columns must be {', '.join(_COLUMNS)}")
        table = table.astype(
            {"run": int, "trained_env_frames": int, "env_frames": int, "return": float}
        )
    except (OSError, EOFError, ValueError, pd.errors.ParserError) as error:
        raise errors.UserError(
            f"cannot read {path}: {errors.first_line(error)}. Use an {EPISODES_FILE} of a report."
        ) from None
    if unknown := set(table["game"]) - dopamine.curves().keys():
        raise errors.UserError(f"{path} holds {min(unknown)}, of which Dopamine has no curves.")
    return table


def write_episodes(path: pathlib.Path, episodes: pd.DataFrame) -> None:
    """Writes a table of episodes; a file with episodes that the table lacks is kept, renamed."""
    if path.exists():
        keys = ["game", "env_frames", "return"]
        try:
            old = read_episodes(path).merge(episodes[keys], "left", on=keys, indicator=True)
            is_lost = (old["_merge"] == "left_only").any()
        except errors.UserError:
            is_lost = True
        if is_lost:
            number = 1 + len(list(path.parent.glob(f"*_{path.name}")))
            path.rename(kept := path.with_name(f"{number}_{path.name}"))
            logging.warning("Kept %s, whose episodes are not in the runs, as %s", path, kept)
    content = episodes.to_csv(index=False, lineterminator="\n")
    atomic.write(path, _compress(content))


def _compress(text: str) -> bytes:
    import gzip

    return gzip.compress(text.encode(), mtime=0)  # equal episodes, equal bytes


def join(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Returns the runs of all parts, those of each game numbered from 1.

    Raises:
      UserError: If a run is in two parts, or games have different numbers of runs.
    """
    runs: dict[str, list[pd.DataFrame]] = {}
    for part in parts:
        before = {game: list(others) for game, others in runs.items()}
        for (game, _), run in part.groupby(["game", "run"], sort=False):
            others = runs.setdefault(game, [])
            if any(_is_same(run, other) for other in before.get(game, ())):
                raise errors.UserError(
                    f"a run of {game} is given twice. Remove a file from {ELSEWHERE}/, or the game."
                )
            others.append(run.assign(run=1 + len(others)))
    counts = {game: len(seeds) for game, seeds in runs.items()}
    if len(set(counts.values())) > 1:
        raise errors.UserError(
            f"all games must have the same number of runs, got {counts}. Add or remove runs."
        )
    return pd.concat([run for seeds in runs.values() for run in seeds], ignore_index=True)


def _is_same(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Returns whether two tables are of one run, read at different times."""
    columns, count = ["env_frames", "return"], min(len(one), len(other))
    return np.array_equal(one[columns].iloc[:count], other[columns].iloc[:count])


def _curve_table(episodes: pd.DataFrame) -> pd.DataFrame:
    parts = []
    for game, runs in episodes.groupby("game", sort=False):
        of_runs = runs.groupby("run")
        grid = curves.make_grid(
            of_runs["env_frames"].first().max(), of_runs["trained_env_frames"].first().min()
        )
        parts += [_means(run, grid).assign(game=game, label=LABEL) for _, run in of_runs]
    return pd.concat(parts, ignore_index=True)


def _means(run: pd.DataFrame, at: np.ndarray) -> pd.DataFrame:
    """Returns the columns `seed`, `env_frames` and `value` at some env frames."""
    values = aggregates.window_means(run["env_frames"], run["return"], at, dopamine.WINDOW)
    return pd.DataFrame({"seed": run["run"].iloc[0], curves.ENV_FRAMES: at, "value": values})


def _draw(table: pd.DataFrame, path: pathlib.Path) -> None:
    games = list(dict.fromkeys(table["game"]))
    columns = min(_PANEL_COLUMNS, len(games))
    figure, axes = curves.panels(-(-len(games) // columns), columns)
    for panel, game in zip(axes.flat, games, strict=False):
        own = table[table["game"] == game]
        curves.draw(panel, own, curves.ENV_FRAMES)
        for agent, published in dopamine.curves()[game].items():
            shown = shown_points(published, own[curves.ENV_FRAMES].max())
            frames = [point / 1e6 for point in shown]
            panel.plot(frames, shown.values(), "--", marker="o", markersize=3, label=agent)
        panel.set(title=game, ylabel="Return, mean of a million frames")
    for panel in axes.flat[len(games) :]:
        panel.set_axis_off()
    curves.save(figure, path)


def shown_points(published: dict[int, float], last: float) -> dict[int, float]:
    """Returns the points of a published curve that are drawn: those up to the end of a run.

    The first point is drawn unless the run is far shorter.

    Args:
      published: Env frames -> return.
      last: Env frames of the run.
    """
    first = min(published)
    limit = max(last, first) if last >= _FIRST_POINT_FROM * first else last
    return {frames: value for frames, value in published.items() if frames <= limit}


def _returns(episodes: pd.DataFrame, milestones: list[int]) -> pd.DataFrame:
    """Returns columns game, seed, env_frames, value and human_normalised."""
    parts = [
        _means(run, np.array(milestones)).assign(game=game)
        for (game, _), run in episodes.groupby(["game", "run"], sort=False)
    ]
    table = pd.concat(parts, ignore_index=True)
    table["human_normalised"] = [
        _normalised(game, value) for game, value in zip(table["game"], table["value"], strict=True)
    ]
    return table


def _normalised(game: str, value: float) -> float:
    score = reference.normalised("atari", game, value)
    return np.nan if score is None else score


def _returns_table(returns: pd.DataFrame) -> pd.DataFrame:
    table = curves.summarise(returns.assign(label=LABEL), ("game", "label", curves.ENV_FRAMES))
    table["human_normalised"] = list(map(_normalised, table["game"], table["mean"]))
    for agent in dopamine.AGENTS:
        published = [
            dopamine.curves()[game][agent].get(int(frames), np.nan)
            for game, frames in zip(table["game"], table[curves.ENV_FRAMES], strict=True)
        ]
        table[agent.lower()] = published
        table[f"{agent.lower()}_human_normalised"] = list(
            map(_normalised, table["game"], published)
        )
    return table


def _summary_rows(returns: pd.DataFrame, frames: int) -> list[dict[str, object]]:
    """Returns LASER's row and one for each published agent with values of all games."""
    at_frames = returns[returns[curves.ENV_FRAMES] == frames]
    scores = at_frames.pivot(index="seed", columns="game", values="human_normalised")
    scores = scores.dropna(axis="columns")
    if scores.empty:
        return []
    table = scores.to_numpy()
    rows = [_summary_row(frames, LABEL, table)]
    for agent in dopamine.AGENTS:
        published = np.array(
            [_normalised(game, dopamine.curves()[game][agent].get(frames, np.nan))
             for game in scores.columns]
        )[None]  # fmt: skip
        if np.isfinite(published).all():
            row = _summary_row(frames, agent, published) | {"seeds": dopamine.SEEDS}
            improvement = comparison.probability_of_improvement(table, published)
            rows.append(row | _cells("probability_of_improvement", improvement))
    return rows


def _summary_row(frames: int, agent: str, scores: np.ndarray) -> dict[str, object]:
    seeds, games = scores.shape
    row = {"env_frames": frames, "agent": agent, "games": games, "seeds": seeds}
    for measure in _MEASURES:
        row |= _cells(measure.__name__, measure(scores))
    return row


def _cells(name: str, estimate: comparison.Estimate) -> dict[str, float]:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}

"""LASER on Atari beside Dopamine's published agents, at equal frames.

Wherever a return stands, LASER's and theirs, it is the mean over the training episodes of the last
`dopamine.WINDOW` env frames.
"""

import math
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import axes as axes_module

from laser_tf.analysis import (
    atari_episodes,
    figure,
    figures_atari,
    game_curves,
    panels,
    seed_curves,
    wall_clock,
)
from laser_tf.monitoring import episode_log
from laser_tf.scores import aggregates, comparison, dopamine, reference

FRAMES = (1, 2, 4, 10, 20, 50)  # million env frames at which returns are compared
_COLUMNS = 3  # of panels
_FIRST_POINT_FROM = 0.1  # of its env frames

_OTHERS = [agent.lower() for agent in dopamine.AGENTS]
_CURVES = ("game", "label", "env_frames", *seed_curves.COLUMNS)
_RETURNS = (*_CURVES, "human_normalised", *_OTHERS) + tuple(
    f"{agent}_human_normalised" for agent in _OTHERS
)
_MEASURES = (comparison.median, comparison.mean, comparison.interquartile_mean)
_NOTHING = comparison.Estimate(math.nan, math.nan, math.nan)
_SUMMARY = ("env_frames", "agent", "games", "seeds") + tuple(
    f"{measure.__name__}{part}"
    for measure in (*_MEASURES, comparison.probability_of_improvement)
    for part in ("", "_low", "_high")
)


def write(runs: figure.Runs, output: pathlib.Path, elsewhere: Sequence[pathlib.Path] = ()) -> None:
    """Writes a picture, three tables and the episodes behind them to a folder.

    `curves.png` and `curves.csv` have each game's curve, `returns.csv` the games' returns at
    `FRAMES`, up to those that all runs have come to (shorter runs: at their end), and `summary.csv`
    what the human-normalised returns come to over the games.

    Args:
      runs: game -> label -> a run each seed; there is one label.
      output: the folder.
      elsewhere: files of episodes of other runs, to be shown beside these.

    Raises:
      UserError: if a run lacks values, or a file cannot be read.
    """
    here = {
        game: [_read(run) for run in of_game[figures_atari.LABEL]] for game, of_game in runs.items()
    }
    games = atari_episodes.join([here, *map(atari_episodes.read, elsewhere)])
    atari_episodes.write(output / atari_episodes.FILE, games)
    _write_curves(games, output)
    reached = min(run.trained_env_frames for of_game in games.values() for run in of_game)
    milestones = [million * 10**6 for million in FRAMES if million * 10**6 <= reached] or [reached]
    rows = [
        _returns_row(game, of_game, frames)
        for game, of_game in games.items()
        for frames in milestones
    ]
    panels.write_csv(output / "returns.csv", _RETURNS, rows)
    rows = [row for frames in milestones for row in _summary_rows(games, frames)]
    panels.write_csv(output / "summary.csv", _SUMMARY, rows)


def _read(run: pathlib.Path) -> atari_episodes.Run:
    tasks = episode_log.read(run)
    episode_log.check(run, tasks)
    (episodes,) = tasks.values()
    return atari_episodes.Run(episodes.env_frames, episodes.returns, wall_clock.env_frames(run))


def _returns(of_game: Sequence[atari_episodes.Run], at: Sequence[int] | np.ndarray) -> np.ndarray:
    """Float64 [seeds, K] at K env frames; NaN where no episode ended in the window."""
    return np.array(
        [
            aggregates.window_means(run.env_frames, run.returns, at, dopamine.WINDOW)
            for run in of_game
        ]
    )


def _write_curves(games: atari_episodes.Games, output: pathlib.Path) -> None:
    columns = min(_COLUMNS, len(games))
    rows = []
    with panels.drawn(output / "curves.png", -(-len(games) // columns), columns) as axes:
        for panel, (game, of_game) in zip(axes.flat, games.items(), strict=False):
            rows += [[game, figures_atari.LABEL, *row] for row in _draw(panel, game, of_game)]
        for panel in axes.flat[len(games) :]:
            panel.set_axis_off()
    panels.write_csv(output / "curves.csv", _CURVES, rows)


def _draw(panel: axes_module.Axes, game: str, of_game: Sequence[atari_episodes.Run]) -> list[list]:
    """Draws a panel; returns LASER's rows of the CSV, without game and label."""
    first = max(run.env_frames[0] for run in of_game)
    last = min(run.trained_env_frames for run in of_game)
    frames = seed_curves.points(first, last)
    summary = seed_curves.summarise(_returns(of_game, frames))
    seed_curves.draw(panel, frames / 1e6, summary, figures_atari.LABEL)
    for agent, published in dopamine.curves()[game].items():
        shown = points_beside(published, last)
        at = [frames / 1e6 for frames in shown]
        panel.plot(at, list(shown.values()), "--", marker="o", markersize=3, label=agent)
    panel.set(title=game, xlabel=game_curves.ENV_FRAMES, ylabel="Return, mean of a million frames")
    panel.locator_params(axis="x", nbins=5)
    return seed_curves.rows(frames, summary)


def points_beside(points: Mapping[int, float], last: int) -> dict[int, float]:
    """What is drawn of a published curve: up to where a run ends.

    The first point is drawn unless that is so far off that the run would be a stroke beside it.

    Args:
      points: env frames -> return.
      last: env frames to which the run came.
    """
    if last >= _FIRST_POINT_FROM * min(points):
        last = max(last, min(points))
    return {frames: value for frames, value in points.items() if frames <= last}


def _returns_row(game: str, of_game: Sequence[atari_episodes.Run], frames: int) -> list:
    summary = seed_curves.summarise(_returns(of_game, [frames])[:, 0])
    published = [_published(game, agent, frames) for agent in dopamine.AGENTS]
    return [
        *(game, figures_atari.LABEL, frames, *panels.cells(summary[:5]), summary.seeds),
        *panels.cells([_normalised(game, summary.mean), *published]),
        *panels.cells(_normalised(game, value) for value in published),
    ]


def _published(game: str, agent: str, frames: int) -> float:
    """NaN where there is none."""
    return dopamine.curves()[game][agent].get(frames, math.nan)


def _normalised(game: str, value: float) -> float:
    return reference.normalised("atari", game, value)


def _summary_rows(games: atari_episodes.Games, frames: int) -> list[list]:
    """LASER's row, and those of the published agents where they have returns at these frames.

    A game without a return in the window is left out of all of them.
    """
    scores = {
        game: [_normalised(game, value) for value in _returns(of_game, [frames])[:, 0]]
        for game, of_game in games.items()
    }
    scores = {game: of_game for game, of_game in scores.items() if not np.isnan(of_game).any()}
    if not scores:
        return []
    table = np.transpose(list(scores.values()))  # [seeds, games]
    estimates = [measure(table) for measure in _MEASURES]
    rows = [[frames, figures_atari.LABEL, len(scores), len(table), *_cells([*estimates, _NOTHING])]]
    for agent in dopamine.AGENTS:
        published = [_normalised(game, _published(game, agent, frames)) for game in scores]
        if not np.isnan(published).any():
            estimates = _compare(table, np.array(published))
            rows.append([frames, agent, len(scores), dopamine.SEEDS, *_cells(estimates)])
    return rows


def _compare(table: np.ndarray, published: np.ndarray) -> list[comparison.Estimate]:
    """A published agent's part of a row.

    Args:
      table: LASER's scores, [seeds, games].
      published: [games].
    """
    # As many seeds as LASER's, each at their mean: so of both as many scores are trimmed.
    others = np.tile(published, (len(table), 1))
    estimates = [_NOTHING._replace(value=measure(others).value) for measure in _MEASURES]
    return [*estimates, comparison.probability_of_improvement(table, others)]


def _cells(estimates: Sequence[comparison.Estimate]) -> list[str]:
    return panels.cells(value for estimate in estimates for value in estimate)

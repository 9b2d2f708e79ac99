"""Agents on the five games of Atari-5, and the median over 57 games that their returns estimate."""

import logging
import pathlib
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from matplotlib import axes as axes_module

from laser_tf import errors
from laser_tf.plotting import atari, curves, tables
from laser_tf.scores import atari5, comparison, reference

BASELINE = "IMPALA"  # label of the runs whose last returns other labels have to reach
ESTIMATE = "estimated median"  # next to the games
STEP = 250_000  # env frames between two points of a curve

_COLUMNS = (
    *(tables.ENV_FRAMES, "agent", "games", "seeds"),
    *("estimate", "low", "high", "regression_error", "published_median"),
)
_BY = ["game", "label", tables.ENV_FRAMES]


def write(runs: tables.Runs, output: pathlib.Path) -> None:
    """Writes a figure, four tables and the episodes behind them.

    - `curves.png` and `curves.csv`: the curves of the games, and of the estimate, whose bootstrap
      intervals are bars in the figure.
    - `returns.csv`: returns at `atari.MILESTONES`, of the runs that have reached them.
    - `summary.csv`: estimates at these env frames. Those of Dopamine's agents are next to their
      medians over all of Dopamine's games.
    - `reached.csv`: env frames at which the other labels reach the last value of `BASELINE`.
    - `episodes.csv.gz`: all episodes.

    Runs without a finished episode are left out. Estimates require all five games.

    Raises:
      UserError: If no run has a finished episode.
    """
    episodes = atari.keep_episodes(_read(runs), output)
    table = _points(episodes)
    published = atari.normalised(reference.dopamine_curves())
    estimates = _estimates(table, "label").assign(game=ESTIMATE, seed=1)
    all_curves = tables.summarise(pd.concat([table, estimates], ignore_index=True), _BY)
    tables.write_csv(all_curves, output / "curves.csv")
    tables.write_csv(_reached(all_curves), output / "reached.csv")
    reached = table[tables.ENV_FRAMES].isin([m * 10**6 for m in atari.MILESTONES])
    returns = atari.add_published(tables.summarise(table[reached], _BY), published)
    tables.write_csv(returns, output / "returns.csv")
    own = _summary(table[reached]).reindex(columns=_COLUMNS)
    _draw(table, estimates, own, published, output / "curves.png")
    summary = pd.concat([own, _published_summary(published)])
    tables.write_csv(summary.sort_values(tables.ENV_FRAMES, kind="stable"), output / "summary.csv")


def _read(runs: tables.Runs) -> list[pd.DataFrame]:
    """Returns the episodes of each run that has any."""
    parts = []
    for game, label, seed, run in tables.each(runs):
        try:
            if run.exists():
                parts.append(atari.read_run(run, game, label, seed))
        except errors.UserError as error:
            logging.warning("Left out a run: %s", error)
    if not parts:
        raise errors.UserError(f"No run of {', '.join(runs)} has a finished episode. Train a run.")
    return parts


def _points(episodes: pd.DataFrame) -> pd.DataFrame:
    """Returns the table of `atari.window_means` at each `STEP` that a run has reached."""
    trained = episodes.groupby(["game", "label", "run"])["trained_env_frames"].first()
    last = trained.groupby("game").max()

    def points(game: str) -> np.ndarray:
        step = min(STEP, last[game])
        return np.arange(step, last[game] + 1, step)

    table = atari.window_means(episodes, points).dropna(subset="value")
    limits = table.join(trained, on=["game", "label", "seed"])["trained_env_frames"]
    return table[table[tables.ENV_FRAMES] <= limits]


def _estimates(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Returns columns `name`, env_frames and value: the estimate where all games have returns."""
    means = table.groupby([name, tables.ENV_FRAMES, "game"], sort=False)["human_normalised"].mean()
    wide = means.unstack("game").reindex(columns=list(atari5.GAMES)).dropna()
    values = pd.Series(atari5.estimate_median(wide.to_numpy()), wide.index, name="value")
    return values.reset_index()


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for (env_frames, label), points in table.groupby([tables.ENV_FRAMES, "label"], sort=False):
        scores = dict(list(points.groupby("game")["human_normalised"]))
        samples = [scores[game].to_numpy() for game in atari5.GAMES if game in scores]
        counts = {"games": len(samples), "seeds": min(map(len, samples), default=0)}
        row = {tables.ENV_FRAMES: env_frames, "agent": label, **counts}
        if len(samples) == len(atari5.GAMES):
            row |= _cells(samples)
        rows.append(row)
    return pd.DataFrame(rows)


def _cells(samples: Sequence[np.ndarray]) -> dict[str, float]:
    """Returns the estimate of `atari5.GAMES`, [seeds] each, and its two errors.

    The bounds are the 95% bootstrap interval over seeds, which requires two seeds in each game. The
    error is the regression's, for exact returns.
    """

    def statistic(*games: np.ndarray, axis: int) -> np.ndarray:
        return atari5.estimate_median(np.stack([game.mean(axis=axis) for game in games], axis=-1))

    value = float(statistic(*samples, axis=0))
    low = high = np.nan
    if min(map(len, samples)) > 1:
        low, high = comparison.interval(samples, statistic)
    error = value * atari5.RELATIVE_ERROR
    return {"estimate": value, "low": low, "high": high, "regression_error": error}


def _published_summary(published: pd.DataFrame) -> pd.DataFrame:
    estimates = _estimates(published, "agent").rename(columns={"value": "estimate"})
    medians = _medians(published).rename("published_median")
    return estimates.join(medians, ["agent", tables.ENV_FRAMES]).assign(
        games=len(atari5.GAMES),
        seeds=reference.DOPAMINE_SEEDS,
        regression_error=estimates["estimate"] * atari5.RELATIVE_ERROR,
    )


def _medians(published: pd.DataFrame) -> pd.Series:
    """Returns the medians over all games of Dopamine, by agent and env_frames."""
    by = ["agent", tables.ENV_FRAMES]
    return published.groupby(by, sort=False)["human_normalised"].median().rename("value")


def _reached(points: pd.DataFrame) -> pd.DataFrame:
    """Returns when the mean over seeds of each label first is at the last one of `BASELINE`."""
    columns = ("game", "agent", "baseline_env_frames", "baseline_value", "reached_env_frames")
    rows = []
    for game, own in points.groupby("game", sort=False):
        # Points that only later seeds have are last in the table.
        baseline = own[own["label"] == BASELINE].sort_values(tables.ENV_FRAMES)
        for label, curve in own[own["label"] != BASELINE].groupby("label", sort=False):
            for _, last in baseline.tail(1).iterrows():
                at = curve.loc[curve["mean"] >= last["mean"], tables.ENV_FRAMES].min()
                rows.append((game, label, last[tables.ENV_FRAMES], last["mean"], at))
    frames = {name: "Int64" for name in columns if name.endswith(tables.ENV_FRAMES)}
    return pd.DataFrame(rows, columns=columns).astype(frames)


def _draw(
    table: pd.DataFrame,
    estimates: pd.DataFrame,
    summary: pd.DataFrame,
    published: pd.DataFrame,
    path: pathlib.Path,
) -> None:
    count = table["game"].nunique()
    num_panels = count if estimates.empty else count + 1
    figure, axes = curves.make_panels(num_panels, atari.PANEL_COLUMNS)
    atari.draw_games(axes.flat, table)
    if not estimates.empty:
        labels = dict.fromkeys(table["label"])
        _draw_estimates(axes.flat[count], estimates, summary, published, labels)
    curves.save(figure, path)


def _draw_estimates(
    axes: axes_module.Axes,
    estimates: pd.DataFrame,
    summary: pd.DataFrame,
    published: pd.DataFrame,
    labels: Iterable[str],
) -> None:
    axes.set_axis_on()
    curves.draw(axes, estimates, errorbar=None, labels=labels)
    lines = zip(*axes.get_legend_handles_labels(), strict=True)
    colors = {label: line.get_color() for line, label in lines}
    for row in summary.dropna(subset="low").itertuples():
        distances = [[row.estimate - row.low], [row.high - row.estimate]]
        frames = row.env_frames / 1e6
        style = {"fmt": "none", "capsize": 3, "ecolor": colors[row.agent]}
        axes.errorbar(frames, row.estimate, distances, **style)
    axes.set_title(ESTIMATE)
    axes.set_ylabel("Human-normalised")
    last = max(estimates[tables.ENV_FRAMES].max(), published[tables.ENV_FRAMES].min())
    published = published[published[tables.ENV_FRAMES] <= last]
    atari.draw_published(axes, _estimates(published, "agent"))
    medians = _medians(published).reset_index()
    atari.draw_published(axes, medians, "{}, median", linestyle="", markerfacecolor="none")

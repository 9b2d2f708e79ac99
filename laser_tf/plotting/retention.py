"""Share of its best return that a run holds until its end."""

import pathlib

import numpy as np
import pandas as pd

from laser_tf.monitoring import episode_log
from laser_tf.plotting import curves, tables
from laser_tf.scores import aggregates
from laser_tf.workdir import run_directory

_WINDOWS = 20  # of a run; a multiple of 4


def write(runs: tables.Runs, output: pathlib.Path) -> None:
    """Writes `curves.write` and `retention.csv`, a row for each run.

    A run is divided into 20 windows of equal env frames. The columns are the highest mean return of
    a window, the mean return of the episodes of the last five windows, and `retained`:

        retained = (last quarter - b) / (best window - b)

    The base b is 0 if the best window is above 0, otherwise the mean return of the first window
    with an episode, whose policy is nearly random. The value is not finite if that window is the
    best one.
    """
    curves.write(runs, output)
    rows = [
        (game, label, seed, *_measure(run, game)) for game, label, seed, run in tables.each(runs)
    ]
    columns = ["game", "label", "seed", "env_frames", "best_window", "last_quarter", "retained"]
    tables.write_csv(pd.DataFrame(rows, columns=columns), output / "retention.csv")


def _measure(run: pathlib.Path, task: str) -> tuple[int, float, float, float]:
    tasks = episode_log.read(run)
    episode_log.check(run, tasks)
    budget, episodes = run_directory.read_config(run)["run"]["env_frames"], tasks[task]
    ends = np.arange(1, _WINDOWS + 1) * budget / _WINDOWS

    def means(at: np.ndarray, window: int) -> np.ndarray:
        return aggregates.window_means(episodes.env_frames, episodes.returns, at, window)

    windows = means(ends, budget // _WINDOWS)
    best, (last,) = np.nanmax(windows), means(ends[-1:], budget // 4)
    base = 0.0 if best > 0 else windows[~np.isnan(windows)][0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return budget, best, last, (last - base) / (best - base)

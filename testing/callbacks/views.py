"""Runs and evaluations as callbacks see them, without training."""

import math
import pathlib

import numpy as np

from laser_tf.training import callbacks, run_config
from testing import fakes


def run(
    workdir: pathlib.Path,
    mean_return: float = math.nan,
    counts: tuple[int, int] = (0, 0),
    config: run_config.RunConfig | None = None,
) -> callbacks.Run:
    """Returns the view of a run at a mean return, env frames and learner updates."""
    config = config or fakes.catch_config(run={"evaluate_every_env_frames": 100})
    view = callbacks.Run(config, workdir, lambda: counts, lambda: mean_return, wall_seconds=60.0)
    view.start_clock()
    return view


def evaluation(mean_return: float, env_frames: int = 100) -> callbacks.Evaluation:
    """Returns an evaluation of weights that equal its mean return."""
    summary = {"mean_return": mean_return, "seconds": 2.5, "tasks": {"catch": {}}}
    weights = [np.full((2, 3), mean_return, np.float32), np.float32([mean_return])]
    return callbacks.Evaluation(env_frames, env_frames // 10, mean_return, summary, weights)

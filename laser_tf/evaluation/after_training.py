"""The evaluation that ends a run."""

import logging
import pathlib

from laser_tf.evaluation import evaluation_files, evaluator
from laser_tf.training import run_config


def evaluate(workdir: pathlib.Path, config: run_config.RunConfig) -> None:
    """Evaluates a finished run, unless that is done or not wanted.

    Args:
      workdir: of the run.
      config: of the run.
    """
    wanted = config.run.evaluation_episodes
    # It saw all of the training, which may have gone on since.
    if not wanted or evaluation_files.has_the_runs(workdir, config.run.env_frames):
        return
    # The user who trains has named the environment's code.
    summary = evaluator.evaluate(
        workdir, episodes=wanted, seed=config.run.seed, video=True, trust_config=True
    )
    logging.info(
        "mean return of %d evaluation episodes: %.2f", summary["episodes"], summary["mean_return"]
    )

"""The evaluation that ends a run."""

import json
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
    if not config.run.evaluation_episodes or _is_evaluated(workdir, config):
        return
    summary = evaluator.evaluate(
        workdir, episodes=config.run.evaluation_episodes, seed=config.run.seed, video=True
    )
    logging.info(
        "mean return of %d evaluation episodes: %.2f", summary["episodes"], summary["mean_return"]
    )


def _is_evaluated(workdir: pathlib.Path, config: run_config.RunConfig) -> bool:
    """Whether the newest evaluation saw all of the training, which may have gone on since."""
    try:
        summary = json.loads(evaluation_files.result_file(workdir).read_text())
        is_of_all = summary["env_frames"] >= config.run.env_frames
        return is_of_all and evaluation_files.is_the_runs(summary)
    except (OSError, ValueError, KeyError):  # none, or not one of ours
        return False

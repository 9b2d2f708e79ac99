"""A run evaluated with all its memory and with histories of several lengths (R2D2, figure 5)."""

import logging
import pathlib
from collections.abc import Sequence

from laser_tf.evaluation import evaluation_files
from launch import subcommand


def evaluate(
    run: pathlib.Path, history_lengths: Sequence[int], episodes: int, env_frames: int
) -> None:
    """Runs `launch.evaluate` for what is missing.

    Args:
      run: a finished run's folder.
      history_lengths: agent steps, the current one included; full memory comes in addition.
      episodes: of each evaluation, the same for all: a result of fewer or more is made anew.
      env_frames: that the run has learned from: a result of fewer is made anew, too.

    Raises:
      UsageError: if an evaluation fails.
    """
    for length in (0, *history_lengths):
        if evaluation_files.has_the_runs(run, env_frames, length, episodes):
            continue
        logging.info("evaluating with %s", f"the last {length} steps" if length else "all memory")
        subcommand.run(
            "evaluate",
            f"--workdir={run}",
            f"--episodes={episodes}",
            "--trust_config",  # the user named the environment to train this run
            f"--history_length={length}",
        )

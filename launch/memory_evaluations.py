"""A run evaluated with all its memory and with histories of several lengths (R2D2, figure 5)."""

import json
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
        if _is_there(evaluation_files.result_file(run, length), episodes, env_frames):
            continue
        logging.info("evaluating with %s", f"the last {length} steps" if length else "all memory")
        subcommand.run(
            "evaluate",
            f"--workdir={run}",
            f"--episodes={episodes}",
            f"--history_length={length}",
        )


def _is_there(result: pathlib.Path, episodes: int, env_frames: int) -> bool:
    try:
        summary = json.loads(result.read_text())
    except (FileNotFoundError, json.JSONDecodeError):  # never begun, or cut short
        return False
    is_of_all = summary.get("env_frames", 0) >= env_frames
    is_as_long = summary["episodes"] == episodes * len(summary["tasks"])
    return is_of_all and is_as_long and evaluation_files.is_the_runs(summary)

"""Evaluates the newest weights of a run by the papers' protocol.

python -m launch.evaluate --workdir=runs/pong --episodes=200 --video
python -m launch.evaluate --workdir=runs/pong --greedy
python -m launch.evaluate --workdir=runs/tmaze --history_length=10
"""

from laser_tf.runtime import versions
from launch import interruption

if __name__ == "__main__":
    interruption.before_imports()
    versions.check()  # a wrong TensorFlow fails while Reverb is imported

import json
import logging
import pathlib

from absl import flags

from laser_tf.environments import faults
from laser_tf.runtime import checkpointing, evaluation_files, evaluator
from launch import command_line

_WORKDIR = flags.DEFINE_string("workdir", None, "the run's folder")
_EPISODES = flags.DEFINE_integer("episodes", 200, "episodes to play")
_SEED = flags.DEFINE_integer("seed", 12345, "of environments and actions")
_VIDEO = flags.DEFINE_bool("video", False, "film the episode of median return")
_GREEDY = flags.DEFINE_bool(
    "greedy", False, "take the action of the largest probability, or value, instead of drawing one"
)
_HISTORY_LENGTH = flags.DEFINE_integer(
    "history_length",
    0,
    "agent steps that a recurrent agent remembers, the current included; 0: all",
)


def main() -> None:
    """Plays, prints and writes `evaluation.json`, or `evaluation_history_<k>.json`.

    Each is kept in `evaluations/`, too, when another one is made.
    """
    if not _WORKDIR.value:
        raise command_line.UsageError("--workdir is missing: name the folder of a run")
    if _EPISODES.value < 1:
        raise command_line.UsageError(f"--episodes is {_EPISODES.value}: use 1 or more")
    if _HISTORY_LENGTH.value < 0:
        raise command_line.UsageError(
            f"--history_length is {_HISTORY_LENGTH.value}: use 1 or more agent steps, or 0 for all"
        )
    workdir = pathlib.Path(_WORKDIR.value)
    summary = evaluator.evaluate(
        workdir,
        episodes=_EPISODES.value,
        seed=_SEED.value,
        video=_VIDEO.value,
        history_length=_HISTORY_LENGTH.value,
        greedy=_GREEDY.value,
    )
    print(json.dumps(summary, indent=2))
    logging.info("written to %s", evaluation_files.result_file(workdir, _HISTORY_LENGTH.value))


if __name__ == "__main__":
    command_line.run(
        main,
        (ValueError, ImportError, checkpointing.WorkdirError, faults.EnvironmentFailedError),
    )

"""Hands a run's metrics to Weights & Biases or MLflow, from the files in its folder.

    python -m launch.track --workdir=runs/pong --to=wandb
    python -m launch.track --workdir=runs/pong --to=mlflow

A command of its own, so that training needs neither package nor network. Where they go is said by
the services' own variables: WANDB_MODE=offline keeps them in files for `wandb sync`, and
MLFLOW_TRACKING_URI names MLflow's server or file. A second call continues the service's run: the
file tracking.json in the run's directory names it.
"""

from laser_tf.host import interruption

if __name__ == "__main__":
    interruption.before_imports()

from laser_tf.workdir import versions

if __name__ == "__main__":
    versions.check()  # a wrong TensorFlow fails while Reverb is imported

import pathlib

from absl import flags

from laser_tf.analysis import tracking
from launch import command_line

_WORKDIR = flags.DEFINE_string("workdir", None, "the run's folder")
_TO = flags.DEFINE_enum("to", "wandb", tracking.SERVICES, "the service; its package is yours")
_PROJECT = flags.DEFINE_string("project", "laser_tf", "W&B's project or MLflow's experiment")


def main() -> None:
    """Hands over and says how much."""
    if not _WORKDIR.value:
        raise command_line.UsageError("--workdir is missing: name the folder of a run")
    rows = tracking.hand_over(pathlib.Path(_WORKDIR.value), _TO.value, _PROJECT.value)
    print(f"{rows:,} new rows handed to {_TO.value}")


if __name__ == "__main__":
    command_line.run(main, (OSError,))

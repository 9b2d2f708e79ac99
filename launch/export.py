"""Exports a run's newest policy as a SavedModel that acts with TensorFlow alone.

python -m launch.export --workdir=runs/pong --output=policy
python -m launch.export --workdir=runs/corridor --output=policy --trust_config
"""

from laser_tf.host import interruption
from laser_tf.workdir import versions

if __name__ == "__main__":
    interruption.before_imports()
    versions.check()  # a wrong TensorFlow fails while Reverb is imported

import logging
import pathlib

from absl import flags

from laser_tf.export import exporter
from laser_tf.training import learner_config
from launch import command_line

_WORKDIR = flags.DEFINE_string("workdir", None, "the run's folder")
_OUTPUT = flags.DEFINE_string("output", None, "a new folder for the policy")
_COMPUTE_DTYPE = flags.DEFINE_enum(
    "compute_dtype",
    None,
    learner_config.COMPUTE_DTYPES,
    "of the torso, e.g. float32 for machines without bfloat16 [as launch.evaluate has it here]",
)
_TRUST_CONFIG = command_line.define_trust_config()


def main() -> None:
    """Writes the folder and says where it lies."""
    for flag, what in ((_WORKDIR, "the folder of a run"), (_OUTPUT, "a new folder")):
        if not flag.value:
            raise command_line.UsageError(f"--{flag.name} is missing: name {what}")
    output = pathlib.Path(_OUTPUT.value)
    workdir, dtype = pathlib.Path(_WORKDIR.value), _COMPUTE_DTYPE.value or ""
    exporter.export(workdir, output, dtype, _TRUST_CONFIG.value)
    logging.info("written to %s; %s says what goes in and out", output, output / "README.md")


if __name__ == "__main__":
    command_line.run(main)

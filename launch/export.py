"""Exports a run's newest policy as a SavedModel that acts with TensorFlow alone.

python -m launch.export --workdir=runs/pong --output=policy
python -m launch.export --workdir=runs/pong --output=policy --format=onnx
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

_WORKDIR = command_line.define_path("workdir", "run directory")
_OUTPUT = command_line.define_path("output", "new directory for the policy")
_COMPUTE_DTYPE = flags.DEFINE_enum(
    "compute_dtype",
    None,
    learner_config.COMPUTE_DTYPES,
    "dtype of the torso, e.g. float32 for machines without bfloat16 [as launch.evaluate here]",
)
_BEST = flags.DEFINE_bool(
    "best", False, "export the weights that laser_tf.callbacks:KeepBest has kept, not the newest"
)
_FORMAT = flags.DEFINE_enum(
    "format", exporter.SAVED_MODEL, exporter.FORMATS, "file format; onnx needs make onnx"
)
_TRUST_CONFIG = command_line.define_trust_config()


def main() -> None:
    """Exports the policy and logs its directory."""
    for flag in (_WORKDIR, _OUTPUT):
        if not flag.value:
            raise command_line.UsageError(f"--{flag.name} must name a directory, got none.")
    output = pathlib.Path(_OUTPUT.value)
    workdir, dtype = pathlib.Path(_WORKDIR.value), _COMPUTE_DTYPE.value or ""
    exporter.export(
        workdir, output, dtype, _TRUST_CONFIG.value, best=_BEST.value, model_format=_FORMAT.value
    )
    logging.info("Wrote %s; %s describes inputs and outputs", output, output / "README.md")


if __name__ == "__main__":
    command_line.run(main)

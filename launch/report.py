"""Reports what sweeps have reached, as the paper does: one HTML page, pictures and CSV files.

    python -m launch.report --workdir=runs/comparison

The folder may hold any number of sweeps (of launch.sweep), at any depth, finished or running. Those
with the same label and replica but different tasks count as one sweep. Episode returns are averaged
in buckets of env frames, then comes the median over tasks, then the best agent at each point, then
the mean over replicas. The buckets are the paper's where runs are long enough for 20 of them: a
million env frames on Atari, ten on DMLab (a hundred, from two billion on); elsewhere a fiftieth of
the longest budget.
"""

from laser_tf.host import interruption

if __name__ == "__main__":
    interruption.before_imports()

import pathlib

from absl import flags

from launch import command_line

_WORKDIR = flags.DEFINE_string("workdir", None, "a folder in which sweeps lie")
_OUTPUT = flags.DEFINE_string("output", None, "the report's folder [<workdir>/report]")
_BUCKET = flags.DEFINE_integer("bucket", 0, "env frames averaged into a point; 0: chosen", 0)


def main() -> None:
    """Writes the report and says where it is."""
    if not _WORKDIR.value:
        raise command_line.UsageError("--workdir is missing: name a folder in which sweeps lie")
    folder = pathlib.Path(_WORKDIR.value)
    from laser_tf.analysis import report_files  # loads TensorFlow

    page = report_files.write(
        folder, pathlib.Path(_OUTPUT.value or folder / "report"), _BUCKET.value
    )
    print(f"written: {page}")


if __name__ == "__main__":
    command_line.run(main, (OSError,))

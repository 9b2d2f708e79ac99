"""Draws learning curves of finished or running runs, with the numbers beside the picture as CSV.

Returns are those of `episodes.csv`, each point the mean of the last 100; of three seeds or more the
mean's 95% bootstrap interval is shaded, of two both are drawn.

python -m launch.plot --output=results/pong.png --title=pong \
    --curve=LASER=runs/pong1,runs/pong2 --curve=IMPALA=runs/impala1,runs/impala2
"""

from launch import interruption

if __name__ == "__main__":
    interruption.before_imports()

import csv
import pathlib

import matplotlib
import numpy as np
from absl import flags

from laser_tf.runtime import metrics
from launch import command_line, seed_curves

_CURVES = flags.DEFINE_multi_string("curve", [], "LABEL=WORKDIR[,WORKDIR...], one seed each")
_OUTPUT = flags.DEFINE_string("output", "learning_curves.png", "the picture; .csv lies beside it")
_TITLE = flags.DEFINE_string("title", "", "above the picture")
_METRIC = flags.DEFINE_string(
    "metric", metrics.RETURN, "episode returns, or a scalar of TensorBoard's by its name"
)
_WORDS = {metrics.RETURN: f"Episode return, mean of {seed_curves.EPISODES} episodes"}

_Curves = dict[str, tuple[np.ndarray, seed_curves.Summary]]  # label -> env frames, seeds


def main() -> None:
    """Draws each label's mean over seeds."""
    if not _CURVES.value:
        raise command_line.UsageError("--curve is missing: give --curve=LABEL=WORKDIR,WORKDIR")
    curves = {
        label: seed_curves.read(folders, _METRIC.value)
        for label, folders in map(_split, _CURVES.value)
    }
    output = pathlib.Path(_OUTPUT.value)
    output.parent.mkdir(parents=True, exist_ok=True)
    _draw(curves, output)
    _write_csv(curves, output.with_suffix(".csv"))
    print(f"written: {output} and {output.with_suffix('.csv')}")


def _split(curve: str) -> tuple[str, list[pathlib.Path]]:
    label, separator, folders = curve.partition("=")
    if not separator:
        raise command_line.UsageError(f"--curve={curve}: use LABEL=WORKDIR[,WORKDIR...]")
    return label, [pathlib.Path(folder) for folder in folders.split(",")]


def _draw(curves: _Curves, output: pathlib.Path) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    for label, (frames, summary) in curves.items():
        count = f" ({summary.seeds} seeds)" if summary.seeds > 1 else ""
        seed_curves.draw(axes, frames / 1e6, summary, label + count)
    axes.set(
        xlabel="Million environment frames",
        ylabel=_WORDS.get(_METRIC.value, _METRIC.value),
        title=_TITLE.value,
    )
    meaning = seed_curves.explanation([summary for _, summary in curves.values()])
    axes.legend(title=meaning or None, title_fontsize="small")
    figure.savefig(output, dpi=130)


def _write_csv(curves: _Curves, output: pathlib.Path) -> None:
    with output.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["label", "env_frames", *seed_curves.COLUMNS])
        for label, (frames, summary) in curves.items():
            rows.writerows([label, *row] for row in seed_curves.rows(frames, summary))


if __name__ == "__main__":
    command_line.run(main, (OSError,))

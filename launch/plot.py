"""Draws learning curves of finished or running runs, with the numbers beside the picture as CSV.

python -m launch.plot --output=results/pong.png --title=pong \
    --curve=LASER=runs/pong1,runs/pong2 --curve=IMPALA=runs/impala1,runs/impala2
"""

import csv
import pathlib

import matplotlib
import numpy as np
from absl import flags

from laser_tf.runtime import metrics
from launch import command_line

_CURVES = flags.DEFINE_multi_string("curve", [], "LABEL=WORKDIR[,WORKDIR...], one seed each")
_OUTPUT = flags.DEFINE_string("output", "learning_curves.png", "the picture; .csv lies beside it")
_TITLE = flags.DEFINE_string("title", "", "above the picture")
_METRIC = flags.DEFINE_string("metric", metrics.RETURN, "a scalar of TensorBoard's")

_POINTS = 200


def main() -> None:
    """Draws each label's mean over seeds, with the range of the seeds shaded."""
    if not _CURVES.value:
        raise command_line.UsageError("--curve is missing: give --curve=LABEL=WORKDIR,WORKDIR")
    curves = {label: _read(folders) for label, folders in map(_split, _CURVES.value)}
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


def _read(folders: list[pathlib.Path]) -> tuple[np.ndarray, np.ndarray]:
    """Env frames [_POINTS], up to where the shortest run came, and values [seeds, _POINTS]."""
    runs = []
    for folder in folders:
        frames, values = metrics.read_scalars(folder / "tensorboard", _METRIC.value)
        if not len(frames):
            raise command_line.UsageError(f"{folder} holds no values of {_METRIC.value}")
        runs.append((frames, values))
    grid = np.linspace(max(f[0] for f, _ in runs), min(f[-1] for f, _ in runs), _POINTS)
    return grid, np.array([np.interp(grid, frames, values) for frames, values in runs])


def _draw(curves: dict[str, tuple[np.ndarray, np.ndarray]], output: pathlib.Path) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    for label, (frames, values) in curves.items():
        count = f" ({len(values)} seeds)" if len(values) > 1 else ""
        (line,) = axes.plot(frames / 1e6, values.mean(axis=0), label=label + count)
        axes.fill_between(
            frames / 1e6, values.min(axis=0), values.max(axis=0), alpha=0.2, color=line.get_color()
        )
    axes.set(xlabel="million env frames", ylabel=_METRIC.value, title=_TITLE.value)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(output, dpi=130)


def _write_csv(curves: dict[str, tuple[np.ndarray, np.ndarray]], output: pathlib.Path) -> None:
    with output.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["label", "env_frames", "mean", "min", "max", "seeds"])
        for label, (frames, values) in curves.items():
            for frame, column in zip(frames, values.T, strict=True):
                summary = (column.mean(), column.min(), column.max())
                rows.writerow([label, int(frame), *(f"{x:.3f}" for x in summary), len(column)])


if __name__ == "__main__":
    command_line.run(main, (OSError,))

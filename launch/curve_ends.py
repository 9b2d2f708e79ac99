"""Prints where the curves of CSV files end, and when they pass a value: the numbers of docs/.

    python -m launch.curve_ends --csv=results/pong.csv --above=18
    python -m launch.curve_ends --csv=results/figure_3_left.csv --last_frames=20000

The files hold mean and range of the seeds at each point, so that of up to three seeds all values
are known, though not which seed has which. So the mean over several points is that of the lowest at
each, of the highest, and of the one between; and the first, second and third passing are where one,
two and three seeds are above at once. Of more seeds the mean alone is told.
"""

from laser_tf.host import interruption

if __name__ == "__main__":
    interruption.before_imports()

import csv
import pathlib
import sys

import numpy as np
from absl import flags

from launch import command_line

_FILES = flags.DEFINE_multi_string("csv", [], "a file of launch.plot or launch.report")
_ABOVE = flags.DEFINE_float("above", None, "print where, in env frames or seconds, values pass it")
_LAST_FRAMES = flags.DEFINE_integer(
    "last_frames", 0, "average over so many of the last env frames (or seconds); 0: the last point"
)

_AXES = ("env_frames", "seconds")
# What a sweep's curve calls its mean, its range and their number, and what a run's.
_COLUMNS = (("mean", "worst", "best", "replicas"), ("mean", "min", "max", "seeds"))


def main() -> None:
    """Writes one row a curve to the standard output."""
    if not _FILES.value:
        raise command_line.UsageError("--csv is missing: give --csv=results/pong.csv, for example")
    paths = list(map(pathlib.Path, _FILES.value))
    (axis, *others), curves = zip(*map(_read, paths), strict=True)
    if set(others) - {axis}:
        raise command_line.UsageError(
            f"--csv={paths[0]} is over {axis}, another file is not: give files over env frames, or "
            "files over time"
        )
    rows = csv.writer(sys.stdout, lineterminator="\n")
    passing = [] if _ABOVE.value is None else [f"{axis}_above_{_ABOVE.value:g}"]
    rows.writerow(["file", "label", axis, "mean", "of_each", *passing])
    for path, of_file in zip(paths, curves, strict=True):
        for label, curve in of_file.items():
            rows.writerow([path.name, label, *_describe(curve)])


def _read(path: pathlib.Path) -> tuple[str, dict[str, np.ndarray]]:
    """The axis, and each curve's points: where, mean, and each seed's values in rising order.

    A curve's name is its label, where there are several games with the game before it.

    Raises:
      UsageError: if the file is not one of curves.
    """
    with path.open(newline="") as file:
        table = csv.DictReader(file)
        try:
            header = table.fieldnames or []
        except UnicodeDecodeError:  # a picture, for example
            header = []
        columns = next((names for names in _COLUMNS if set(names) <= set(header)), None)
        axis = next((name for name in _AXES if name in header), None)
        if columns is None or axis is None or "label" not in header:
            raise command_line.UsageError(
                f"--csv={path} holds no curves: give a file of launch.plot or launch.report"
            )
        curves: dict[str, list[list[float]]] = {}
        for row in table:
            try:
                mean, low, high = (float(row[name] or "nan") for name in columns[:3])
                seeds, point = int(row[columns[3]]), float(row[axis])
            except (TypeError, ValueError):
                raise command_line.UsageError(
                    f"--csv={path} is damaged in line {table.line_num}: make it anew"
                ) from None
            values = _of_each(mean, low, high, seeds)
            label = ", ".join(row[name] for name in ("game", "label") if name in header)
            curves.setdefault(label, []).append([point, mean, *values])
    return axis, {label: _array(points) for label, points in curves.items()}


def _array(points: list[list[float]]) -> np.ndarray:
    """A row each; of fewer seeds than others, as while a sweep goes on, NaNs stand before them."""
    width = max(map(len, points))
    return np.array(
        [[*point[:2], *[np.nan] * (width - len(point)), *point[2:]] for point in points]
    )


def _of_each(mean: float, low: float, high: float, seeds: int) -> list[float]:
    """The seeds' values, rising; none of more than three, which the file does not tell."""
    match seeds:
        case 1:
            return [mean]
        case 2:
            return [low, high]
        case 3:  # rounded numbers may overshoot
            return [low, min(max(3 * mean - low - high, low), high), high]
    return []


def _describe(curve: np.ndarray) -> list[str]:
    points, values = curve[:, 0], curve[:, 1:]
    last = values[(points > points[-1] - _LAST_FRAMES.value) | (points == points[-1])]
    seeds, *others = np.isfinite(last[:, 1:]).sum(axis=1)
    # Nothing of each where they are not as many at all of these points.
    of_each = last[:, last.shape[1] - seeds :] if set(others) <= {seeds} else last[:, :0]
    texts = [
        f"{points[-1]:.0f}",
        f"{last[:, 0].mean():.3f}",
        " ".join(f"{value:.3f}" for value in of_each.mean(axis=0)),
    ]
    if _ABOVE.value is not None:
        above = values[:, :0:-1] > _ABOVE.value  # the highest first: it is the first to pass
        first = [points[seed.argmax()] if seed.any() else np.nan for seed in above.T]
        texts.append(" ".join(f"{at:.0f}" for at in first))
    return texts


if __name__ == "__main__":
    command_line.run(main, (OSError,))

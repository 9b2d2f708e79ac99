"""Draws learning curves of finished or running runs, with the numbers beside the picture as CSV.

Returns are those of `episodes.csv`, each point the mean of the last 100; of three seeds or more the
mean's 95% bootstrap interval is shaded, of two both are drawn.

python -m launch.plot --output=results/pong.png --title=pong \
    --curve=LASER=runs/pong1,runs/pong2 --curve=IMPALA=runs/impala1,runs/impala2

With --over=time they are drawn over the time that was spent in training.
"""

from laser_tf.host import interruption

if __name__ == "__main__":
    interruption.before_imports()

import csv
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from absl import flags

from launch import command_line

if TYPE_CHECKING:
    import numpy as np

    from laser_tf.analysis import seed_curves

_CURVES = flags.DEFINE_multi_string("curve", [], "LABEL=WORKDIR[,WORKDIR...], one seed each")
_OUTPUT = flags.DEFINE_string("output", "learning_curves.png", "the picture; .csv lies beside it")
_TITLE = flags.DEFINE_string("title", "", "above the picture")
_METRIC = flags.DEFINE_string(
    "metric", None, "episode returns [default], or a scalar of TensorBoard's by its name"
)
_OVER = flags.DEFINE_enum("over", "frames", ("frames", "time"), "env frames, or time of training")

_FIRST_COLUMN = "label"

# Label -> env frames or seconds, and the seeds there.
_Curves = dict[str, "tuple[np.ndarray, seed_curves.Summary]"]


def main() -> None:
    """Draws each label's mean over seeds."""
    if not _CURVES.value:
        raise command_line.UsageError("--curve is missing: give --curve=LABEL=WORKDIR,WORKDIR")
    given = _split(_CURVES.value)
    output = pathlib.Path(_OUTPUT.value)
    _check_drawable(output, [_TITLE.value, *given])
    _check_replaceable(output.with_suffix(".csv"))
    # TensorFlow takes seconds to load: not before all is checked that can be.
    from laser_tf.analysis import game_curves, seed_curves
    from laser_tf.monitoring import tensorboard

    metric = _METRIC.value or tensorboard.RETURN
    over_seconds = _OVER.value == "time"
    curves = {
        label: seed_curves.read(folders, metric, over_seconds=over_seconds)
        for label, folders in given.items()
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    last = max(float(points[-1]) for points, _ in curves.values())
    _draw(curves, metric, output, *game_curves.axis(last, over_seconds=over_seconds))
    _write_csv(curves, output.with_suffix(".csv"), over_seconds=over_seconds)
    print(f"written: {output} and {output.with_suffix('.csv')}")


def _split(curves: Sequence[str]) -> dict[str, list[pathlib.Path]]:
    """Label -> folders.

    Raises:
      UsageError: for what is no curve, or a label or a curve's folder that is given twice.
    """
    given: dict[str, list[pathlib.Path]] = {}
    for curve in curves:
        label, separator, text = curve.partition("=")
        if not separator:
            raise command_line.UsageError(f"--curve={curve}: use LABEL=WORKDIR[,WORKDIR...]")
        if not label or label.startswith("_"):
            raise command_line.UsageError(
                f"--curve={curve}: Matplotlib's legend leaves out what has no label or one that "
                "begins with an underscore: give another label"
            )
        if label in given:
            raise command_line.UsageError(
                f"--curve={curve}: there is one of that label already: give another label, or all "
                "its folders at once"
            )
        # A folder's name may have commas: a sweep's of several tasks does.
        folders = [text] if pathlib.Path(text).is_dir() else text.split(",")
        given[label] = list(map(pathlib.Path, folders))
        resolved = [folder.resolve() for folder in given[label]]
        for folder in resolved:
            if resolved.count(folder) > 1:
                raise command_line.UsageError(
                    f"--curve={curve}: {folder} is in it twice, which would count as two seeds: "
                    "leave it out once"
                )
    return given


def _check_drawable(output: pathlib.Path, texts: Sequence[str]) -> None:
    """Checks what Matplotlib would refuse after everything is read.

    Raises:
      UsageError: for a picture of an unknown kind, or a text whose mathematics it cannot read.
    """
    from matplotlib import backend_bases, cbook, mathtext

    kinds = sorted(backend_bases.FigureCanvasBase.filetypes.keys() - {"pgf"})  # it needs LaTeX
    if output.suffix.lower().removeprefix(".") not in kinds:
        raise command_line.UsageError(
            f"--output={output}: end it in .png, .pdf or another of {', '.join(kinds)}"
        )
    for text in filter(cbook.is_math_text, texts):
        try:
            mathtext.MathTextParser("path").parse(text)
        except ValueError:
            raise command_line.UsageError(
                f"{text!r} holds mathematics that Matplotlib cannot read: mend it, or write \\$ "
                "for a dollar sign"
            ) from None


def _check_replaceable(table: pathlib.Path) -> None:
    """Raises UsageError where there is another file than a table of curves: a run's log, say."""
    if not table.exists():
        return
    with table.open(errors="replace") as file:
        if not file.readline().startswith(f"{_FIRST_COLUMN},"):
            raise command_line.UsageError(
                f"--output would replace {table}, which is no table of launch.plot: give another "
                "name"
            )


def _draw(curves: _Curves, metric: str, output: pathlib.Path, unit: float, name: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from laser_tf.analysis import seed_curves
    from laser_tf.monitoring import tensorboard

    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    for label, (points, summary) in curves.items():
        count = f" ({summary.seeds} seeds)" if summary.seeds > 1 else ""
        seed_curves.draw(axes, points / unit, summary, label + count)
    # In words, as the axis has them.
    returns = f"Episode return, mean of {seed_curves.EPISODES} episodes"
    axes.set(
        xlabel=name,
        ylabel=returns if metric == tensorboard.RETURN else metric,
        title=_TITLE.value,
    )
    meaning = seed_curves.explanation([summary for _, summary in curves.values()])
    axes.legend(title=meaning or None, title_fontsize="small")
    figure.savefig(output, dpi=130)


def _write_csv(curves: _Curves, output: pathlib.Path, *, over_seconds: bool) -> None:
    from laser_tf.analysis import seed_curves

    with output.open("w", newline="") as file:
        rows = csv.writer(file)
        x = "seconds" if over_seconds else "env_frames"
        rows.writerow([_FIRST_COLUMN, x, *seed_curves.COLUMNS])
        for label, (points, summary) in curves.items():
            of_label = seed_curves.rows(points, summary, over_seconds=over_seconds)
            rows.writerows([label, *row] for row in of_label)


if __name__ == "__main__":
    command_line.run(main, (OSError,))

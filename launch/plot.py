r"""Plots learning curves, reports sweeps, prints ends of curves, and exports metrics.

    python -m launch.plot --output=results/pong.png --title=pong \
        --curve=LASER=runs/pong1,runs/pong2 --curve=IMPALA=runs/impala1,runs/impala2
    python -m launch.plot --report=runs/sweep
    python -m launch.plot --csv=results/pong.csv --above=18
    python -m launch.plot --track=wandb --workdir=runs/pong

Curves: each point is the mean of the last 100 returns of `episodes.csv`. With three or more seeds,
the 95% bootstrap interval of the mean is shaded; with two seeds, both are plotted. The numbers are
written as CSV next to the figure.

Report: all sweeps in a directory, at any depth, as one HTML page with figures and CSV files. Sweeps
with the same label and seed but different tasks count as one.

Tracking: sends a run's metrics to Weights & Biases or MLflow. WANDB_MODE=offline keeps files for
`wandb sync`, and MLFLOW_TRACKING_URI names MLflow's server or file. Later calls send new rows.
"""

from laser_tf.host import interruption
from laser_tf.workdir import versions

if __name__ == "__main__":
    interruption.before_imports()
    versions.check()

import pathlib
import sys

from absl import flags

from launch import command_line

_CURVES = flags.DEFINE_multi_string("curve", [], "LABEL=WORKDIR[,WORKDIR...], a run for each seed")
_OUTPUT = command_line.define_path(
    "output", "figure [learning_curves.png], or directory of the report [<report>/report]"
)
_TITLE = flags.DEFINE_string("title", "", "title of the figure")
_METRIC = flags.DEFINE_string(
    "metric", None, "TensorBoard scalar to plot [returns of training episodes]"
)
_OVER = flags.DEFINE_enum("over", "frames", ("frames", "time"), "axis: env frames or training time")
_REPORT = command_line.define_path("report", "directory that contains sweeps")
_BUCKET = flags.DEFINE_integer(
    "bucket", 0, "env frames averaged per point of the report; 0: automatic", 0
)
_FILES = flags.DEFINE_multi_string("csv", [], "CSV file of curves whose ends are printed")
_ABOVE = flags.DEFINE_float("above", None, "print when means exceed it, in env frames or seconds")
_LAST_FRAMES = flags.DEFINE_integer(
    "last_frames", 0, "average over the last env frames (or seconds); 0: the last point", 0
)
_TRACK = flags.DEFINE_enum("track", None, ("wandb", "mlflow"), "service that receives the metrics")
_WORKDIR = command_line.define_path("workdir", "run directory for --track")
_PROJECT = flags.DEFINE_string("project", "laser_tf", "project or experiment at the service")


def main() -> None:
    """Does what the flags request; exactly one of the four uses."""
    uses = (
        (_CURVES, _draw, (_OUTPUT, _TITLE, _METRIC, _OVER)),
        (_REPORT, _report, (_OUTPUT, _BUCKET)),
        (_FILES, _print_ends, (_ABOVE, _LAST_FRAMES)),
        (_TRACK, _track, (_WORKDIR, _PROJECT)),
    )
    chosen = [(flag, use, options) for flag, use, options in uses if flag.value]
    if len(chosen) != 1:
        given = ", ".join(f"--{flag.name}" for flag, *_ in chosen) or "none"
        raise command_line.UsageError(
            f"exactly one of --curve, --report, --csv and --track must be given, got {given}. Use "
            "e.g. --curve=LABEL=WORKDIR,WORKDIR."
        )
    ((flag, use, options),) = chosen
    own = {option.name for option in options}
    others = [option for *_, known in uses for option in known if option.name not in own]
    command_line.check_unused(others, f"with --{flag.name}")
    use()


def _draw() -> None:
    given = _read_curves()
    output = pathlib.Path(_OUTPUT.value or "learning_curves.png")
    table_path = _check_output(output)
    # TensorFlow takes seconds to load: only after the checks.
    from laser_tf.plotting import curves, tables

    x = tables.ENV_FRAMES if _OVER.value == "frames" else tables.SECONDS
    metric = _METRIC.value or tables.RETURN
    table = tables.read({_TITLE.value: given}, metric, x)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = curves.make_panels(1, 1)
    counted = curves.with_seed_counts(table)
    curves.draw_panels(axes.flat, counted, "game", curves.metric_label(metric), x=x)
    curves.save(figure, output)
    tables.write_csv(tables.summarise(table, ("label", x)), table_path)
    print(f"Wrote {output} and {table_path}")


def _read_curves() -> dict[str, list[pathlib.Path]]:
    """Returns label -> run directories; raises UsageError for a repeated run."""
    curves: dict[str, list[pathlib.Path]] = {}
    for label, text in command_line.key_values(_CURVES, "LABEL=WORKDIR[,WORKDIR...]").items():
        # The name of a directory may have commas: that of a sweep with several tasks does.
        folders = [text] if pathlib.Path(text).is_dir() else text.split(",")
        if "" in folders:  # Otherwise the current directory.
            raise command_line.UsageError(
                f"--curve must name run directories, got {label}={text}. Use LABEL=WORKDIR."
            )
        curves[label] = list(map(pathlib.Path, folders))
        if len({folder.resolve() for folder in curves[label]}) < len(folders):
            raise command_line.UsageError(f"--curve must name each run once, got {label}={text}.")
    return curves


def _check_output(output: pathlib.Path) -> pathlib.Path:
    """Returns the path of the table; rejects an unknown file type and a table of another kind."""
    from matplotlib import backend_bases

    kinds = sorted(backend_bases.FigureCanvasBase.filetypes.keys() - {"pgf"})  # requires LaTeX
    if output.suffix.lower().removeprefix(".") not in kinds:
        raise command_line.UsageError(
            f"--output must end in one of {', '.join(kinds)}, got {output}. Use e.g. .png."
        )
    table = output.with_suffix(".csv")
    if table.exists() and not table.read_text(errors="replace").startswith("label,"):
        raise command_line.UsageError(
            f"--output would replace {table}, which is no table of launch.plot. Use another name."
        )
    return table


def _report() -> None:
    folder = pathlib.Path(_REPORT.value)
    from laser_tf.plotting import sweep_report  # loads TensorFlow

    output = pathlib.Path(_OUTPUT.value or folder / "report")
    print(f"Wrote {sweep_report.write(folder, output, _BUCKET.value)}")


def _print_ends() -> None:
    """Prints a CSV row for each curve of the files: its end, its mean there, where it passes."""
    import pandas as pd

    rows = []
    for path in map(pathlib.Path, _FILES.value):
        try:
            # Without a converter, a label such as "None" would be a missing value.
            table = pd.read_csv(path, converters={"label": str, "game": str})
        except (ValueError, pd.errors.ParserError):  # e.g. a figure
            table = pd.DataFrame()
        numbers = table.select_dtypes("number")
        axis = next((name for name in ("env_frames", "seconds") if name in numbers), None)
        if axis is None or "mean" not in numbers or "label" not in table:
            raise command_line.UsageError(
                f"--csv must be a table of curves, got {path}. Use a file of launch.plot."
            )
        keys = [name for name in ("game", "label") if name in table]
        for key, curve in table.groupby(keys, sort=False):
            end = curve[axis].max()
            is_last = (curve[axis] == end) | (curve[axis] > end - _LAST_FRAMES.value)
            last = curve[is_last]
            row = {"file": path.name, "label": ", ".join(map(str, key)), axis: end}
            row |= {name: last[name].mean() for name in ("mean", "min", "max") if name in numbers}
            if _ABOVE.value is not None:
                above = curve.loc[curve["mean"] > _ABOVE.value, axis]
                row[f"{axis}_above_{_ABOVE.value:g}"] = above.min()
            rows.append(row)
    print(pd.DataFrame(rows).to_csv(index=False, float_format="%.6g"), end="", file=sys.stdout)


def _track() -> None:
    if not _WORKDIR.value:
        raise command_line.UsageError("--workdir is missing. Use --track with a run directory.")
    from laser_tf.plotting import tracking

    workdir = pathlib.Path(_WORKDIR.value)
    count = tracking.send_run(workdir, _TRACK.value, _PROJECT.value)
    print(f"Sent {count} rows of {workdir} to {_TRACK.value}")


if __name__ == "__main__":
    command_line.run(main, (OSError,))

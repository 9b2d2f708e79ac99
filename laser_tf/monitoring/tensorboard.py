"""TensorBoard: writing a run's metrics, and reading them back for pictures."""

import contextlib
import math
import pathlib
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import metadata as layout_metadata
from tensorboard.plugins.hparams import api as hparams
from tensorboard.plugins.image import metadata as image_metadata
from tensorboard.plugins.scalar import summary_v2 as scalar_summary

from laser_tf import errors
from laser_tf.host import failure_notice
from laser_tf.monitoring import event_files

RETURN = "episode/mean_return_last_100"
EVALUATION_RETURN = "episode/evaluation_mean_return"


class MetricsWriter:
    """Scalars over env frames; a context manager.

    A resumed run adds a file to the folder, and TensorBoard forgets the rows from its first on.
    Rows that cannot be written, on a full disk, are lost with a warning; the run goes on.
    """

    def __init__(self, folder: pathlib.Path):
        """Opens nothing yet; `folder` is where the events file will be."""
        self._folder = folder
        self._writer: tf.summary.SummaryWriter | None = None
        self._is_first_row = True
        self._notice = failure_notice.FailureNotice(f"rows reach {folder} again")

    def __enter__(self) -> "MetricsWriter":
        return self

    def __exit__(self, *_) -> None:
        if self._writer:
            with _warning_of_failures(self._folder, self._notice):
                self._writer.close()

    def _append(self, env_frames: int, write: Callable[[tf.summary.SummaryWriter], None]) -> None:
        # Readers leave a file where a row is cut short: after a failure another one is begun.
        writer, self._writer = self._writer, None
        with _warning_of_failures(self._folder, self._notice):
            if not writer:
                number = event_files.number_next_file(self._folder)
                writer = tf.summary.create_file_writer(str(self._folder))
                _write_event(writer, env_frames, session_log=number)
            # NumPy's, since TensorFlow keeps every Python number that it ever made a tensor of.
            with writer.as_default(step=np.int64(env_frames)):
                write(writer)
            writer.flush()
            self._writer = writer

    def hyperparameters(self, config: dict[str, Any]) -> None:
        """Writes a flat configuration for TensorBoard's HPARAMS and TEXT pages."""
        # A trial bears the run's name, with its folder's since agents of sweeps are named alike.
        run = self._folder.absolute().parent
        name = f"{run.parent.name}/{run.name}"
        plain = {  # the page takes no tuples and no None
            key: value if isinstance(value, bool | int | float | str) else str(value)
            for key, value in config.items()
        }

        def write(_: tf.summary.SummaryWriter) -> None:
            hparams.hparams(plain, trial_id=name)
            tf.summary.text("config", _markdown(config))

        self._append(0, write)

    def chart_returns(self) -> None:
        """Has the CUSTOM SCALARS page show training's returns and evaluations' in one chart."""
        both = layout_pb2.MultilineChartContent(tag=[f"^{RETURN}$", f"^{EVALUATION_RETURN}$"])
        chart = layout_pb2.Chart(title="mean return: training and evaluations", multiline=both)
        layout = layout_pb2.Layout(category=[layout_pb2.Category(title="episode", chart=[chart])])

        def write(_: tf.summary.SummaryWriter) -> None:
            tf.summary.write(
                layout_metadata.CONFIG_SUMMARY_TAG,
                layout.SerializeToString(),
                metadata=layout_metadata.create_summary_metadata(),
            )

        self._append(0, write)

    def write(self, env_frames: int, metrics: dict[str, float]) -> None:
        """Writes one row; NaNs (nothing measured yet) are left out.

        Rows of other metrics may be of later frames.
        """
        values = {name: value for name, value in metrics.items() if not math.isnan(value)}

        def write(writer: tf.summary.SummaryWriter) -> None:
            if self._is_first_row:
                # Tells TensorBoard to drop what a crashed session wrote from this frame on.
                start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
                _write_event(writer, env_frames, session_log=start)
            _write_event(writer, env_frames, summary=_scalars(values))

        self._append(env_frames, write)
        self._is_first_row &= self._writer is None


def _write_event(writer: tf.summary.SummaryWriter, env_frames: int, **content: Any) -> None:
    event = event_pb2.Event(wall_time=time.time(), step=env_frames, **content)
    # tf.summary writes a scalar at a time, which takes as long as a whole row here, and has no
    # public call for an event that is no summary.
    tf.raw_ops.ImportEvent(writer=writer._resource, event=event.SerializeToString())


def _scalars(values: Mapping[str, float]) -> summary_pb2.Summary:
    row = summary_pb2.Summary()
    for name, value in values.items():
        row.MergeFrom(scalar_summary.scalar_pb(name, np.float32(value)))
    return row


def _markdown(config: Mapping[str, Any]) -> str:
    """A table of names and values."""
    cells = ((name, str(value).replace("|", "\\|") or " ") for name, value in config.items())
    return "\n".join(["| key | value |", "|---|---|", *(f"| {a} | `{b}` |" for a, b in cells)])


def write_film(folder: pathlib.Path, env_frames: int, name: str, gif: bytes) -> None:
    """Shows a short film on TensorBoard's IMAGES page.

    Args:
      folder: not that of a run's scalars: TensorBoard leaves a file for a later one beside it, and
        the run may go on.
      env_frames: that its agent had learned from.
      name: its tag.
      gif: its bytes.
    """
    size = [str(number).encode() for number in struct.unpack("<HH", gif[6:10])]
    described = image_metadata.create_summary_metadata(
        display_name=None,
        description="Pictures spread evenly over a whole episode; all of it is in `videos/`.",
    )
    with _warning_of_failures(folder.parent, failure_notice.FailureNotice("")):
        writer = tf.summary.create_file_writer(str(folder))
        with writer.as_default(step=np.int64(env_frames)):
            # tf.summary.image makes a PNG, which does not move, of whatever it gets.
            tf.summary.write(name, tf.constant([*size, gif]), metadata=described)
        writer.close()


@contextlib.contextmanager
def _warning_of_failures(
    folder: pathlib.Path, notice: failure_notice.FailureNotice
) -> Iterator[None]:
    """Curves are worth less than the run that they show."""
    try:
        yield
        notice.succeeded()
    except (tf.errors.OpError, OSError) as error:
        reason = errors.first_line(error)
        notice.failed(f"what TensorBoard shows of {folder.parent} has a gap: {reason}")
        for path in folder.glob("events.*"):  # a file for each attempt, else
            if not path.stat().st_size:
                path.unlink()


def write_sweep_columns(
    folder: pathlib.Path, hyperparameters: Mapping[str, Mapping[str, Any]]
) -> None:
    """Tells TensorBoard's HPARAMS page what a sweep varies: one row an agent, with its return.

    Args:
      folder: of the sweep's own events, above the agents' folders in `--logdir`.
      hyperparameters: agent -> "section.key" -> value.
    """
    names = sorted({name for given in hyperparameters.values() for name in given})
    notice = failure_notice.FailureNotice("")
    with _warning_of_failures(folder, notice):
        writer = tf.summary.create_file_writer(str(folder))
        with writer.as_default():
            hparams.hparams_config(
                hparams=[hparams.HParam(name) for name in names],
                metrics=[hparams.Metric(RETURN, display_name="return, last 100 episodes")],
            )
        writer.close()


def read_scalars(folder: pathlib.Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """One metric of a run.

    Args:
      folder: with events files.
      name: e.g. "episode/mean_return_last_100".

    Returns:
      Env frames int64 [n] and values float64 [n], by frame; empty without such a metric. Of frames
      that were run twice, after a crash, the later run's.
    """
    return read_several(folder, (name,))[name]


def read_several(
    folder: pathlib.Path, names: Sequence[str]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Several metrics at the price of one: each name with what `read_scalars` returns."""
    scalars = event_files.read_scalars(folder)
    return {name: _standing(scalars.get(name, ())) for name in names}


def read_rows(folder: pathlib.Path) -> dict[int, dict[str, float]]:
    """All scalars of a run: env frames, ascending -> name -> value; empty without any."""
    rows: dict[int, dict[str, float]] = {}
    for name, points in event_files.read_scalars(folder).items():
        for frames, value in zip(*_standing(points), strict=True):
            rows.setdefault(int(frames), {})[name] = float(value)
    return dict(sorted(rows.items()))


def _standing(points: Sequence[tuple[int, float]]) -> tuple[np.ndarray, np.ndarray]:
    steps = np.array([step for step, _ in points], np.int64)
    values = np.array([value for _, value in points], np.float64)
    # Unlike TensorBoard's pages, the files keep both runs of a frame: a row stands if all rows
    # after it are of later frames.
    ends = np.append(steps[1:], np.iinfo(np.int64).max)
    stands = steps < np.minimum.accumulate(ends[::-1])[::-1][: len(steps)]
    return steps[stands], values[stands]

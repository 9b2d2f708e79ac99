"""TensorBoard event files: writes a run's metrics and reads them back for plots."""

import io
import logging
import math
import os
import pathlib
import re
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import message
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import summary as layout_summary
from tensorboard.plugins.hparams import api as hparams
from tensorboard.plugins.image import metadata as image_metadata
from tensorboard.plugins.scalar import metadata as scalar_metadata
from tensorboard.plugins.scalar import summary_v2 as scalar_summary
from tensorboard.plugins.text import summary_v2 as text_summary
from tensorboard.summary.writer import record_writer
from tensorboard.util import tensor_util

from laser_tf import errors
from laser_tf.host import log_messages
from laser_tf.monitoring import csv_log, evaluation_log
from laser_tf.monitoring import metrics as metric_names

RETURN = "episode/mean_return_last_100"
NEW_RETURN = "episode/mean_return"
FINAL_RETURN = "evaluation/mean_return"
_IDENTITY = ("environment.task", "agent.name", "run.seed")
_FILE = re.compile(r"tfevents\.(\d+)")


class MetricsWriter:
    """Writes scalars over env frames into a new event file in `folder`.

    A resumed run adds a file, and TensorBoard drops the older rows from its first row on. After an
    evaluation has written to the directory of a run that trains, the next row starts another file,
    because TensorBoard reads only the latest. Rows that cannot be written, e.g. on a full disk, are
    lost with one warning.
    """

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self._path: pathlib.Path | None = None
        self._has_rows = False
        self._notice = log_messages.FailureNotice(
            on_recovery=f"Rows in {folder} can be written again"
        )

    def _append(self, env_frames: int, *contents: Mapping[str, Any]) -> bool:
        """Writes events with these fields; returns whether that succeeded."""
        try:
            if not self._path:
                self._folder.mkdir(parents=True, exist_ok=True)
            newest = max(map(_number, self._folder.iterdir()), default=0)
            if not self._path or _number(self._path) < newest:
                # The order of names is that of the numbers, independent of the clock.
                name = f"{newest + 1:010d}.{socket.gethostname()}.{os.getpid()}.0.v2"
                self._path = self._folder / f"events.out.tfevents.{name}"
            records = b"".join(_record(step=env_frames, **content) for content in contents)
            csv_log.append(self._path, records, start=_record(file_version="brain.Event:2"))
        except OSError as error:
            reason = error.strerror or errors.first_line(error)
            self._notice.failed(f"Cannot write to {self._folder}: {reason}; its rows are lost")
            return False
        self._notice.succeeded()
        return True

    def hyperparameters(self, config: dict[str, Any]) -> None:
        """Writes a flat configuration for TensorBoard's HPARAMS and TEXT pages."""
        # A pickled function of `laser_tf.train` is no text to read.
        config = {k: v for k, v in config.items() if k != "environment.pickled_function"}
        plain = {  # The page accepts neither tuples nor None.
            key: value if isinstance(value, bool | int | float | str) else str(value)
            for key, value in config.items()
        }
        # The members of all sweeps have the same names, so a trial has two.
        trial_id = "/".join(self._folder.absolute().parts[-3:-1])
        trial = hparams.hparams_pb(plain, trial_id=trial_id)
        self._append(0, {"summary": trial})
        self.write_table(0, "config", config)

    def write_table(self, env_frames: int, name: str, rows: Mapping[str, Any]) -> None:
        """Writes a table of keys and values for TensorBoard's TEXT page."""
        cells = ((key, str(value).replace("|", "\\|") or " ") for key, value in rows.items())
        lines = ("| key | value |", "|---|---|", *(f"| {key} | `{text}` |" for key, text in cells))
        self._append(env_frames, {"summary": text_summary.text_pb(name, "\n".join(lines))})

    def chart_returns(self) -> None:
        """Shows the returns of training and evaluations in one chart of CUSTOM SCALARS."""
        tags = [f"^{name}$" for name in (RETURN, NEW_RETURN, evaluation_log.RETURN)]
        returns = layout_pb2.MultilineChartContent(tag=tags)
        chart = layout_pb2.Chart(title="mean return: training and evaluations", multiline=returns)
        layout = layout_pb2.Layout(category=[layout_pb2.Category(title="episode", chart=[chart])])
        content = layout_summary.pb(layout).SerializeToString()  # Of TensorFlow's own class.
        self._append(0, {"summary": summary_pb2.Summary.FromString(content)})

    def write(self, env_frames: int, metrics: Mapping[str, float]) -> None:
        """Writes one row without its NaNs, which mean that nothing was measured yet.

        Rows of other metrics may be at later frames.
        """
        # Makes TensorBoard drop the rows of a crashed session from this frame on.
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        starts = () if self._has_rows else ({"session_log": start},)
        self._has_rows |= self._append(env_frames, *starts, {"summary": _scalars(metrics)})

    def write_final_return(self, env_frames: int, mean_return: float) -> None:
        """Writes the mean return of an evaluation of the newest weights; all rows remain."""
        self._append(env_frames, {"summary": _scalars({FINAL_RETURN: mean_return})})

    def write_video(self, env_frames: int, name: str, gif: bytes) -> None:
        """Writes a GIF for TensorBoard's IMAGES page."""
        size = [str(number).encode() for number in struct.unpack("<HH", gif[6:10])]
        metadata = image_metadata.create_summary_metadata(
            display_name=None,
            description="Images spread evenly over an episode; `videos/` has all of them.",
        )
        # tf.summary.image would convert the video to a PNG, which does not move.
        tensor = tensor_util.make_tensor_proto([*size, gif])
        value = summary_pb2.Summary.Value(tag=name, tensor=tensor, metadata=metadata)
        self._append(env_frames, {"summary": summary_pb2.Summary(value=[value])})

    def write_sweep_columns(self, hyperparameters: Mapping[str, Mapping[str, Any]]) -> None:
        """Writes the columns of the HPARAMS page, given member -> `section.key` -> value.

        They are task, agent, seed, the hyper-parameters, and the returns of the evaluation after
        training and of the last training episodes.
        """
        names = sorted({name for given in hyperparameters.values() for name in given})
        columns = hparams.hparams_config_pb(
            hparams=[hparams.HParam(name) for name in dict.fromkeys((*_IDENTITY, *names))],
            metrics=[
                hparams.Metric(FINAL_RETURN, display_name="return, evaluation"),
                hparams.Metric(RETURN, display_name="return, last 100 episodes"),
            ],
        )
        self._append(0, {"summary": columns})


def _number(path: pathlib.Path) -> int:
    match = _FILE.search(path.name)
    return int(match[1]) if match else 0


def _record(**fields: Any) -> bytes:
    buffer = io.BytesIO()
    event = event_pb2.Event(wall_time=time.time(), **fields)
    record_writer.RecordWriter(buffer).write(event.SerializeToString())
    return buffer.getvalue()


def _scalars(metrics: Mapping[str, float]) -> summary_pb2.Summary:
    row = summary_pb2.Summary()
    for name, value in metrics.items():
        if not math.isnan(value):
            text = metric_names.describe(name)
            row.MergeFrom(scalar_summary.scalar_pb(name, np.float32(value), description=text))
    return row


def read_scalars(folder: pathlib.Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Reads one metric of a run from a directory of event files, which may be missing.

    Returns env frames int64 [n], ascending, and values float64 [n]. If frames were run twice, after
    a crash, the values are those of the later run.
    """
    return read_several(folder, (name,))[name]


def read_several(
    folder: pathlib.Path, names: Sequence[str]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Reads several metrics at once; returns each name with the result of `read_scalars`."""
    scalars = _read_all(folder)
    return {name: _drop_repeated(scalars.get(name, ())) for name in names}


def read_rows(folder: pathlib.Path) -> dict[int, dict[str, float]]:
    """Reads all scalars of a run: env frames, ascending -> name -> value."""
    rows: dict[int, dict[str, float]] = {}
    for name, points in _read_all(folder).items():
        for frames, value in zip(*_drop_repeated(points), strict=True):
            rows.setdefault(int(frames), {})[name] = float(value)
    return dict(sorted(rows.items()))


def _read_all(folder: pathlib.Path) -> dict[str, list[tuple[int, float]]]:
    """Returns (step, value) pairs of each scalar in the order of writing."""
    scalars: dict[str, list[tuple[int, float]]] = {}
    for path in sorted(folder.glob("*tfevents*"), key=_number):
        for event in _read_events(path):
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name == scalar_metadata.PLUGIN_NAME:
                    number = float(tf.make_ndarray(value.tensor))
                    scalars.setdefault(value.tag, []).append((event.step, number))
    return scalars


def _read_events(path: pathlib.Path) -> Iterator[event_pb2.Event]:
    """Yields the events of a file up to the first damaged record, which gives a warning."""
    try:
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            yield event_pb2.Event.FromString(record)
    except (tf.errors.OpError, message.DecodeError) as error:
        logging.warning("Skipped damaged rest of %s: %s", path, errors.first_line(error))


def _drop_repeated(points: Sequence[tuple[int, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the steps and values of the points whose later points all have larger steps."""
    steps = np.array([step for step, _ in points], np.int64)
    values = np.array([value for _, value in points], np.float64)
    later_steps = np.append(steps[1:], np.iinfo(np.int64).max)
    is_kept = steps < np.minimum.accumulate(later_steps[::-1])[::-1][: len(steps)]
    return steps[is_kept], values[is_kept]

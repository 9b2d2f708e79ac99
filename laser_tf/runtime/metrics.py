"""TensorBoard: writing a run's metrics, and reading them back for pictures."""

import math
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import api as hparams


class MetricsWriter:
    """Scalars over env frames; a context manager. A resumed run adds a file to the folder."""

    def __init__(self, folder: pathlib.Path):
        """Opens a new events file in a folder."""
        self._writer = tf.summary.create_file_writer(str(folder))

    def __enter__(self) -> "MetricsWriter":
        return self

    def __exit__(self, *_) -> None:
        self._writer.close()

    def hyperparameters(self, config: dict[str, Any]) -> None:
        """Writes a flat configuration for TensorBoard's HPARAMS page."""
        with self._writer.as_default():
            hparams.hparams(config)

    def write(self, env_frames: int, metrics: dict[str, float]) -> None:
        """Writes one row; NaNs (nothing measured yet) are left out."""
        with self._writer.as_default(step=env_frames):
            for name, value in metrics.items():
                if not math.isnan(value):
                    tf.summary.scalar(name, value)
        self._writer.flush()


def read_scalars(folder: pathlib.Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """One metric of a run.

    Args:
      folder: with events files.
      name: e.g. "episode/mean_return_last_100".

    Returns:
      Env frames int64 [n] and values float64 [n], by frame; empty without such a metric. Of frames
      that were run twice, after a crash, the later run's.
    """
    accumulator = event_accumulator.EventAccumulator(
        str(folder), size_guidance={event_accumulator.TENSORS: 0}
    )
    accumulator.Reload()
    rows: dict[int, float] = {}
    for event in accumulator.Tensors(name) if name in accumulator.Tags()["tensors"] else ():
        rows = {step: value for step, value in rows.items() if step < event.step}
        rows[event.step] = float(tf.make_ndarray(event.tensor_proto))
    return np.array(list(rows), np.int64), np.array(list(rows.values()), np.float64)

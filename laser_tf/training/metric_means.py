"""Means of metrics that stay on the learner's device until they are reported."""

import math

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import resource_variable_ops

from laser_tf import array_function


class MetricMeans:
    """Means of an update's metrics over all updates since they were read last.

    The host need not wait for an update: reading each metric after each update would stop an
    accelerator. The variables belong to no `tf.Module`, so that no checkpoint contains them.
    """

    def __init__(self):
        self._names: tuple[str, ...] = ()
        self._sums_and_counts: tf.Variable | None = None  # float32 [2, M]
        self._take = array_function.ArrayFunction(self._read_and_reset)

    def add(self, metrics: dict[str, tf.Tensor]) -> None:
        """Adds the M scalars of one update, in its graph; NaN is an unknown value."""
        self._names = tuple(metrics)
        if self._sums_and_counts is None:
            # The class of tf.Variable itself: with tf.Variable, the update would be traced twice.
            with tf.init_scope():
                self._sums_and_counts = resource_variable_ops.ResourceVariable(
                    np.zeros([2, len(metrics)], np.float32), trainable=False
                )
        values = tf.stack([tf.cast(value, tf.float32) for value in metrics.values()])
        is_known = ~tf.math.is_nan(values)
        self._sums_and_counts.assign_add(
            [tf.where(is_known, values, 0.0), tf.cast(is_known, tf.float32)]
        )

    def read(self) -> dict[str, float]:
        """Returns the means since the last call, NaN if all values were unknown; resets them.

        Without updates there are no means.
        """
        if self._sums_and_counts is None:
            return {}
        sums, counts = self._take()
        if not counts.any():
            return {}
        return {
            name: float(total / count) if count else math.nan
            for name, total, count in zip(self._names, sums, counts, strict=True)
        }

    def _read_and_reset(self) -> tf.Tensor:
        sums_and_counts = tf.identity(self._sums_and_counts)
        with tf.control_dependencies([sums_and_counts]):
            self._sums_and_counts.assign(tf.zeros_like(sums_and_counts))
        return sums_and_counts

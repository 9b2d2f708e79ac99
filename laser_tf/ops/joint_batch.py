"""Sums over the joint batch of several replicas, each with an equal share of the batch.

Within `tf.distribute.Strategy.run` each replica computes the loss of its share. Moments, means
and gradients must be computed from all shares, otherwise the replicas diverge. Outside of a
strategy a single learner has the whole batch, and the sums are the inputs.
"""

from typing import Any, NamedTuple

import tensorflow as tf


class Mean(NamedTuple):
    """Sum and count of a mean, which can be added over replicas."""

    total: tf.Tensor  # float32 []
    count: tf.Tensor  # float32 []

    @property
    def value(self) -> tf.Tensor:
        """Mean, float32 []; NaN, which is not logged, if the count is 0."""
        return self.total / self.count


def num_replicas() -> int:
    """Returns the number of replicas in sync, which is 1 outside of a strategy."""
    return tf.distribute.get_replica_context().num_replicas_in_sync


def all_reduce_sum(share: Any) -> Any:
    """Sums tensors over all replicas, bit-identically on each. Do not differentiate the sums.

    All replicas must make the same calls in the same order. Do not call this function in a
    conditional branch.

    Args:
      share: Nest of tensors of this replica, with one dtype and static shapes. All tensors are sent
        as one message to pay its latency once.

    Returns:
      Nest of the sums.
    """
    if num_replicas() == 1:
        return share
    flat = [tf.convert_to_tensor(tensor) for tensor in tf.nest.flatten(share)]
    message = tf.concat([tf.reshape(tensor, [-1]) for tensor in flat], axis=0)
    context = tf.distribute.get_replica_context()
    summed = context.all_reduce(tf.distribute.ReduceOp.SUM, tf.stop_gradient(message))
    parts = tf.split(summed, [tensor.shape.num_elements() for tensor in flat])
    restored = [tf.reshape(part, tensor.shape) for part, tensor in zip(parts, flat, strict=True)]
    return tf.nest.pack_sequence_as(share, restored)


def metric_values(metrics: dict[str, tf.Tensor | Mean]) -> dict[str, tf.Tensor]:
    """Returns metrics as scalars float32 [], with each `Mean` replaced by its value."""
    return {
        name: metric.value if isinstance(metric, Mean) else metric
        for name, metric in metrics.items()
    }

"""Sums over the joint batch of several learners, each of which holds an equal share of it.

Within `tf.distribute.Strategy.run` every replica computes the loss of its own share. Statistics of
a batch (moments, means, the gradient) must be those of all shares, or the replicas would part.
Outside, where one learner has the whole batch, the functions change nothing.
"""

from typing import Any, NamedTuple

import tensorflow as tf


class Mean(NamedTuple):
    """A mean in its parts, by which alone it can be joined with those of the other shares."""

    total: tf.Tensor  # float32 []
    count: tf.Tensor  # float32 []; 0 where there is nothing to be averaged

    @property
    def value(self) -> tf.Tensor:
        """float32 []; NaN where there is nothing to be averaged: no such value is logged."""
        return self.total / self.count


def shares() -> int:
    """How many equal shares the joint batch has; 1 where there is one learner."""
    return tf.distribute.get_replica_context().num_replicas_in_sync


def total(share: Any) -> Any:
    """The sum over all shares, the same bit for bit on every replica; it receives no gradient.

    Every replica must get here, in the same order: never call it in one branch of a condition.

    Args:
      share: nest of tensors of one dtype and of static shapes, this replica's; they travel as one
        message, whose latency would otherwise count for each.

    Returns:
      The same nest.
    """
    if shares() == 1:
        return share
    flat = [tf.convert_to_tensor(tensor) for tensor in tf.nest.flatten(share)]
    message = tf.concat([tf.reshape(tensor, [-1]) for tensor in flat], axis=0)
    context = tf.distribute.get_replica_context()
    summed = context.all_reduce(tf.distribute.ReduceOp.SUM, tf.stop_gradient(message))
    parts = tf.split(summed, [tensor.shape.num_elements() for tensor in flat])
    restored = [tf.reshape(part, tensor.shape) for part, tensor in zip(parts, flat, strict=True)]
    return tf.nest.pack_sequence_as(share, restored)


def values(metrics: dict[str, tf.Tensor | Mean]) -> dict[str, tf.Tensor]:
    """Metrics as numbers, float32 [] each: sums as they are, and means."""
    return {
        name: metric.value if isinstance(metric, Mean) else metric
        for name, metric in metrics.items()
    }

"""Metrics and replay priorities of a batch; not part of any loss."""

import tensorflow as tf

from laser_tf.ops import joint_batch


def masked_mean(values: tf.Tensor, mask: tf.Tensor) -> joint_batch.Mean:
    """Returns the mean of the values where `mask` is true; True counts as 1."""
    # tf.where instead of a product, because masked values may be NaN, e.g. in padding.
    kept = tf.where(mask, tf.cast(values, tf.float32), 0.0)
    return joint_batch.Mean(tf.reduce_sum(kept), tf.reduce_sum(tf.cast(mask, tf.float32)))


def dead_fraction(features: tf.Tensor, mask: tf.Tensor) -> joint_batch.Mean:
    """Returns the fraction of features that are 0 at all steps where `mask` is true.

    A ReLU unit with a negative input for every observation receives no gradient and stays dead.

    Args:
      features: Outputs of a layer, [T, B, F]; without ReLU they are rarely 0.
      mask: Mask of the steps, bool [T, B].
    """
    alive = tf.cast((features != 0) & mask[:, :, None], tf.float32)
    steps = tf.reduce_sum(tf.cast(mask, tf.float32))
    steps_alive, steps = joint_batch.all_reduce_sum((tf.reduce_sum(alive, axis=[0, 1]), steps))
    dead = tf.cast((steps_alive == 0) & (steps > 0), tf.float32)
    return joint_batch.Mean(tf.reduce_sum(dead), tf.reduce_sum(tf.ones_like(dead)) * tf.sign(steps))


PRIORITY_FLOOR = 1e-3


def critic_priorities(values: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the mean critic loss of each unroll, float32 [B] (LASER, section A.2).

    The loss is 1/2 (v_t - V(x_t))^2. `PRIORITY_FLOOR` is added, so that replay also samples unrolls
    that the trust region rejects entirely. It may accept them later.

    Args:
      values: Values V(x_t), float32 [T, B].
      targets: Targets v_t, float32 [T, B].
      mask: Mask, bool [T, B]. Values and targets are not read where it is false.
    """
    errors = tf.where(mask, tf.square(targets - values), 0.0)
    counts = tf.reduce_sum(tf.cast(mask, tf.float32), axis=0)
    return PRIORITY_FLOOR + 0.5 * tf.reduce_sum(errors, axis=0) / tf.maximum(counts, 1.0)

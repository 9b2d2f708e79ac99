"""Leaving time steps out of a loss."""

import tensorflow as tf


def keep(mask: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Returns x [T, B, ...] with zeros where `mask` [T, B] is false.

    Losses mask their arguments before any arithmetic: behind it, the gradient would be 0 * NaN.
    """
    mask = tf.cast(mask, tf.bool)
    for _ in range(x.shape.rank - mask.shape.rank):
        mask = mask[..., None]
    return tf.where(mask, x, tf.zeros_like(x))

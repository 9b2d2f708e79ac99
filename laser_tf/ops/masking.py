"""Masking of time steps in losses."""

import tensorflow as tf


def keep(mask: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Returns x [T, B, ...] with zeros where `mask` [T, B] is false.

    Losses mask their arguments before any arithmetic. Masking the result instead would give a NaN
    gradient (0 * NaN) if a masked argument is NaN.
    """
    mask = tf.cast(mask, tf.bool)
    for _ in range(x.shape.rank - mask.shape.rank):
        mask = mask[..., None]
    return tf.where(mask, x, tf.zeros_like(x))

"""Masking of time steps in losses."""

import tensorflow as tf


def keep(mask: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Returns x [T, B, ...] with zeros where `mask`, bool [T, B], is false.

    Losses mask their arguments before any arithmetic. Masking the result instead would give a NaN
    gradient (0 * NaN) if a masked argument is NaN.
    """
    for _ in range(len(x.shape) - len(mask.shape)):
        mask = mask[..., None]
    return tf.where(mask, x, tf.zeros_like(x))

"""An invertible rescaling of values in place of clipped rewards (Pohlen et al. 2018; R2D2).

Both directions are written without differences of nearly equal numbers, so that in float32 they
keep their relative precision from 0 to the largest values, and so do their gradients.
"""

import tensorflow as tf


def rescale(x: tf.Tensor, epsilon: float) -> tf.Tensor:
    """Squashes values to about their square root.

        h(x) = sign(x) (sqrt(|x| + 1) - 1) + epsilon x
             = x (1 / (sqrt(|x| + 1) + 1) + epsilon)

    Args:
      x: float32 of any shape, values in the units of the rewards.
      epsilon: at least 0; h is nowhere flatter, so that its inverse is nowhere steeper than
        1 / epsilon. 1e-3 in R2D2 (table 2).

    Returns:
      float32 of the same shape, h(x).
    """
    return x * (1.0 / (tf.sqrt(tf.abs(x) + 1.0) + 1.0) + epsilon)


def unrescale(y: tf.Tensor, epsilon: float) -> tf.Tensor:
    """The exact inverse of `rescale` (Pohlen et al. 2018, proposition A.2).

    With u = sqrt(|x| + 1) - 1, which gives |x| = u (u + 2), |h(x)| = |y| is a quadratic equation:

        epsilon u^2 + (1 + 2 epsilon) u - |y| = 0
        u = 2 |y| / (1 + 2 epsilon + sqrt((1 + 2 epsilon)^2 + 4 epsilon |y|))
        h^-1(y) = sign(y) u (u + 2)

    Args:
      y: float32 of any shape, rescaled values.
      epsilon: that of `rescale`.

    Returns:
      float32 of the same shape, h^-1(y).
    """
    linear = 1.0 + 2.0 * epsilon
    ratio = 2.0 / (linear + tf.sqrt(linear**2 + 4.0 * epsilon * tf.abs(y)))  # u / |y|
    return y * ratio * (tf.abs(y) * ratio + 2.0)

"""Invertible value rescaling, an alternative to reward clipping (Pohlen et al. 2018; R2D2).

The formulas avoid differences of nearly equal numbers. Functions and gradients therefore keep their
relative precision in float32 from 0 to the largest values.
"""

import tensorflow as tf


def rescale(x: tf.Tensor, epsilon: float) -> tf.Tensor:
    """Returns h(x), which is close to a signed square root for large values.

        h(x) = sign(x) (sqrt(|x| + 1) - 1) + epsilon x
             = x (1 / (sqrt(|x| + 1) + 1) + epsilon)

    Args:
      x: Values in units of reward, float32 of any shape.
      epsilon: Lower bound of the slope of h, at least 0. The slope of the inverse is at most
        1 / epsilon. R2D2 uses 1e-3 (table 2).
    """
    return x * (1.0 / (tf.sqrt(tf.abs(x) + 1.0) + 1.0) + epsilon)


def unrescale(y: tf.Tensor, epsilon: float) -> tf.Tensor:
    """Returns h^-1(y), the exact inverse of `rescale` (Pohlen et al. 2018, proposition A.2).

    Substituting u = sqrt(|x| + 1) - 1, so that |x| = u (u + 2), in |h(x)| = |y| gives

        epsilon u^2 + (1 + 2 epsilon) u - |y| = 0
        u = 2 |y| / (1 + 2 epsilon + sqrt((1 + 2 epsilon)^2 + 4 epsilon |y|))
        h^-1(y) = sign(y) u (u + 2)

    Args:
      y: Rescaled values, float32 of any shape.
      epsilon: Epsilon of `rescale`.
    """
    linear = 1.0 + 2.0 * epsilon
    ratio = 2.0 / (linear + tf.sqrt(linear**2 + 4.0 * epsilon * tf.abs(y)))  # u / |y|
    return y * ratio * (tf.abs(y) * ratio + 2.0)

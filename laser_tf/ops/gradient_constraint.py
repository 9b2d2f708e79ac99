"""Efficient trust region of ACER (section 3.3), which limits updates of policy statistics.

The policy is f(.|phi), where a network computes the statistics phi. The gradient g with respect to
phi is replaced by the nearest z that raises the linearised divergence from the average policy by at
most delta. Then z is propagated back through the network.
"""

import tensorflow as tf


def constrain(gradient: tf.Tensor, divergence_gradient: tf.Tensor, delta: float) -> tf.Tensor:
    """Returns z* = g - max(0, (k . g - delta) / |k|^2) k, float32 [..., S] (equation 12).

    z* minimises 1/2 |g - z|^2 subject to k . z <= delta (equation 11).

    Args:
      gradient: ASCENT direction g of the statistics, float32 [..., S].
      divergence_gradient: Gradient k of KL(average || current) with respect to the statistics,
        float32 [..., S]. If k is 0, g is not constrained.
      delta: Bound on k . z, at least 0.
    """
    excess = tf.reduce_sum(divergence_gradient * gradient, axis=-1, keepdims=True) - delta
    square = tf.reduce_sum(tf.square(divergence_gradient), axis=-1, keepdims=True)
    return gradient - tf.math.divide_no_nan(tf.maximum(0.0, excess), square) * divergence_gradient


def ascent_loss(statistics: tf.Tensor, direction: tf.Tensor) -> tf.Tensor:
    """Returns the loss - sum z* . phi, float32 [], whose descent moves phi along z*.

    Its gradient with respect to the network weights is - (d phi / d theta)^T z* (algorithm 2).

    Args:
      statistics: Statistics phi, float32 [..., S]; receive the gradient.
      direction: Ascent direction z*, float32 [..., S]; receives no gradient.
    """
    return -tf.reduce_sum(tf.stop_gradient(direction) * statistics)

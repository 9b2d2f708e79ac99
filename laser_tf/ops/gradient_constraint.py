"""ACER's efficient trust region (section 3.3): a bound on the steps of a policy's statistics.

A policy is f(.|phi), its statistics phi the output of a network. The gradient g with respect to phi
is replaced by the nearest z that does not raise the linearised divergence from an average policy by
more than delta; then z is what is propagated back through the network.
"""

import tensorflow as tf


def constrain(gradient: tf.Tensor, divergence_gradient: tf.Tensor, delta: float) -> tf.Tensor:
    """z* = g - max(0, (k . g - delta) / |k|^2) k   (equation 12).

    It solves: minimise 1/2 |g - z|^2 subject to k . z <= delta (equation 11).

    Args:
      gradient: float32 [..., S], g, the direction of ASCENT with respect to the statistics.
      divergence_gradient: float32 [..., S], k, of KL(average || current) likewise; where it is all
        zeros nothing is constrained.
      delta: at least 0.

    Returns:
      float32 [..., S].
    """
    excess = tf.reduce_sum(divergence_gradient * gradient, axis=-1, keepdims=True) - delta
    square = tf.reduce_sum(tf.square(divergence_gradient), axis=-1, keepdims=True)
    return gradient - tf.math.divide_no_nan(tf.maximum(0.0, excess), square) * divergence_gradient


def ascent_loss(statistics: tf.Tensor, direction: tf.Tensor) -> tf.Tensor:
    """The scalar whose descent moves the statistics along a direction: - sum direction . phi.

    Its gradient with respect to the network's weights is - (d phi / d theta)^T z*, algorithm 2's.

    Args:
      statistics: float32 [..., S], phi; receive the gradient.
      direction: float32 [..., S], z*; no gradient flows into it.

    Returns:
      float32 [].
    """
    return -tf.reduce_sum(tf.stop_gradient(direction) * statistics)

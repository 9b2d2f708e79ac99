"""How much a stale core state changes what a network says."""

import tensorflow as tf

_LEAST_SCALE = 1e-6  # where all Q-values are zero, as those of a fresh network may be


def q_discrepancy(q_values: tf.Tensor, q_here: tf.Tensor, q_stored: tf.Tensor) -> tf.Tensor:
    """Delta Q = |q(h^_i) - q(h_i)|_2 / |max_{a, j} q(h^_j)_a| (R2D2, section 3).

    h^ is the core state of training, h the one that acting had and replay stored; q is the same
    network for both. No gradient is taken of it.

    Args:
      q_values: q(h^_j), float32 [R, B, A], of all rows j.
      q_here: q(h^_i), float32 [B, A].
      q_stored: q(h_i), float32 [B, A].

    Returns:
      float32 [B].
    """
    scale = tf.abs(tf.reduce_max(q_values, axis=[0, 2]))
    difference = tf.norm(q_here - q_stored, axis=-1)
    return tf.stop_gradient(difference / tf.maximum(scale, _LEAST_SCALE))

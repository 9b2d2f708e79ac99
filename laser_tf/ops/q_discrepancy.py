"""Effect of stale recurrent states on Q-values."""

import tensorflow as tf

_MIN_SCALE = 1e-6  # prevents division by zero if all Q-values of a new network are zero


def q_discrepancy(q_values: tf.Tensor, q_recomputed: tf.Tensor, q_stored: tf.Tensor) -> tf.Tensor:
    """Returns Delta Q = |q(h^_i) - q(h_i)|_2 / |max_{a, j} q(h^_j)_a| (R2D2, section 3).

    Both terms use the current network q. The recurrent state h^ is recomputed in training, and h is
    the state that the actor stored in replay.

    Args:
      q_values: Q-values q(h^_j) of all time steps j, float32 [R, B, A].
      q_recomputed: Q-values q(h^_i) of time step i, float32 [B, A].
      q_stored: Q-values q(h_i) of time step i, float32 [B, A].

    Returns:
      Discrepancies without gradient, float32 [B].
    """
    scale = tf.abs(tf.reduce_max(q_values, axis=[0, 2]))
    difference = tf.norm(q_recomputed - q_stored, axis=-1)
    return tf.stop_gradient(difference / tf.maximum(scale, _MIN_SCALE))

"""Acting on Q-values: mostly the best action, now and then any."""

import tensorflow as tf


def ladder(games: int | tf.Tensor, base: float, alpha: float) -> tf.Tensor:
    """epsilon_i = base^(1 + alpha i / (N - 1)) of environments 0 .. N - 1 (Horgan et al. 2018).

    Args:
      games: N; a single one gets `base`.
      base: epsilon of the first, the boldest.
      alpha: how much of it is left for the last: base^(1 + alpha).

    Returns:
      float32 [N].
    """
    steps = tf.cast(tf.maximum(1, games - 1), tf.float32)
    exponents = 1.0 + alpha * tf.cast(tf.range(games), tf.float32) / steps
    return tf.pow(base, exponents)


def sample(q_values: tf.Tensor, epsilons: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Draws uniformly with probability epsilon, else takes the largest Q-value.

    Args:
      q_values: float32 [B, A].
      epsilons: float32 [B].
      seed: integers [2], of the draws.

    Returns:
      int32 [B].
    """
    batch, actions = tf.shape(q_values)[0], q_values.shape[1]
    seeds = tf.random.split(seed)
    uniform = tf.random.stateless_uniform([batch], seeds[0], 0, actions, dtype=tf.int32)
    explores = tf.random.stateless_uniform([batch], seeds[1]) < epsilons
    return tf.where(explores, uniform, tf.argmax(q_values, axis=-1, output_type=tf.int32))

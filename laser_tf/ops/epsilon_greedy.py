"""Acting on Q-values: mostly the best action, now and then any."""

import tensorflow as tf


def ladder(games: int, base: float, alpha: float) -> tf.Tensor:
    """epsilon_i = base^(1 + alpha i / (N - 1)) for the games i = 0 .. N - 1 (Horgan et al. 2018).

    Args:
      games: N; a single game gets `base`.
      base: epsilon of game 0, the boldest.
      alpha: how much of it is left for the last: base^(1 + alpha).

    Returns:
      float32 [N].
    """
    exponents = 1.0 + alpha * tf.range(games, dtype=tf.float32) / max(1, games - 1)
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
    batch, actions = q_values.shape
    seeds = tf.random.split(seed)
    uniform = tf.random.stateless_uniform([batch], seeds[0], 0, actions, dtype=tf.int32)
    explores = tf.random.stateless_uniform([batch], seeds[1]) < epsilons
    return tf.where(explores, uniform, tf.argmax(q_values, axis=-1, output_type=tf.int32))

"""Epsilon-greedy exploration."""

import tensorflow as tf


def ladder(num_envs: int | tf.Tensor, base: float, alpha: float) -> tf.Tensor:
    """Returns base^(1 + alpha i / (N - 1)) of environments i = 0 .. N - 1 (Horgan et al. 2018).

    Args:
      num_envs: Number of environments (N). A single environment gets `base`.
      base: Epsilon of environment 0, which explores most.
      alpha: Exponent that sets the last epsilon, base^(1 + alpha).
    """
    steps = tf.cast(tf.maximum(1, num_envs - 1), tf.float32)
    exponents = 1.0 + alpha * tf.cast(tf.range(num_envs), tf.float32) / steps
    return tf.pow(base, exponents)


def sample(q_values: tf.Tensor, epsilons: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Samples a uniform action with probability epsilon, otherwise the greedy action, int32 [B].

    Args:
      q_values: Q-values, float32 [B, A].
      epsilons: Exploration probabilities, float32 [B].
      seed: Random seed, integers [2].
    """
    batch, actions = tf.shape(q_values)[0], q_values.shape[1]
    seeds = tf.random.split(seed)
    uniform = tf.random.stateless_uniform([batch], seeds[0], 0, actions, dtype=tf.int32)
    explores = tf.random.stateless_uniform([batch], seeds[1]) < epsilons
    return tf.where(explores, uniform, tf.argmax(q_values, axis=-1, output_type=tf.int32))

"""Epsilon-greedy exploration."""

import tensorflow as tf

from laser_tf.ops import action_mask


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

    Both are actions that the mask in the Q-values allows.

    Args:
      q_values: Q-values, float32 [B, A], see `action_mask.apply`.
      epsilons: Exploration probabilities, float32 [B].
      seed: Random seed, integers [2].
    """
    seeds = tf.random.split(seed)
    logits = tf.where(action_mask.is_allowed(q_values), 0.0, action_mask.FORBIDDEN)
    uniform = tf.random.stateless_categorical(logits, 1, seeds[0], dtype=tf.int32)[:, 0]
    explores = tf.random.stateless_uniform([tf.shape(q_values)[0]], seeds[1]) < epsilons
    return tf.where(explores, uniform, tf.argmax(q_values, axis=-1, output_type=tf.int32))

"""What the papers make of raw rewards before they learn from them."""

from collections.abc import Callable

import tensorflow as tf


def unit(rewards: tf.Tensor) -> tf.Tensor:
    """To [-1, 1]: Atari (Mnih et al. 2015)."""
    return tf.clip_by_value(rewards, -1.0, 1.0)


def optimistic_asymmetric(rewards: tf.Tensor) -> tf.Tensor:
    """0.3 min(tanh r, 0) + 5 max(tanh r, 0): DMLab (IMPALA, figure D.1)."""
    squashed = tf.tanh(rewards)
    return 0.3 * tf.minimum(squashed, 0.0) + 5.0 * tf.maximum(squashed, 0.0)


REWARD_CLIPS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "none": tf.identity,
    "unit": unit,
    "optimistic_asymmetric": optimistic_asymmetric,
}

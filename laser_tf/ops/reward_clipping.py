"""What the papers make of raw rewards before they learn from them."""

from collections.abc import Callable

import tensorflow as tf


def unit(rewards: tf.Tensor) -> tf.Tensor:
    """To [-1, 1]: Atari (Mnih et al. 2015)."""
    return tf.clip_by_value(rewards, -1.0, 1.0)


def optimistic_asymmetric(rewards: tf.Tensor) -> tf.Tensor:
    """0.3 min(tanh r, 0) + 5 max(tanh r, 0): DMLab, as the paper prints it (IMPALA, figure D.1).

    Rewards above 2 are nearly alike, and a small one counts five times: see `soft_asymmetric`.
    """
    squashed = tf.tanh(rewards)
    return 0.3 * tf.minimum(squashed, 0.0) + 5.0 * tf.maximum(squashed, 0.0)


def soft_asymmetric(rewards: tf.Tensor) -> tf.Tensor:
    """5 tanh(r / 5), 0.3 times that below 0: DMLab, as IMPALA's published code computes it.

    The name is that code's. Small rewards stay what they are, and 1 and 10 stay apart.
    """
    squashed = 5.0 * tf.tanh(rewards / 5.0)
    return tf.where(rewards < 0, 0.3 * squashed, squashed)


REWARD_CLIPS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "none": tf.identity,
    "unit": unit,
    "optimistic_asymmetric": optimistic_asymmetric,
    "soft_asymmetric": soft_asymmetric,
}

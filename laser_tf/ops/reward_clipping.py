"""Reward clipping of the papers."""

from collections.abc import Callable

import tensorflow as tf


def unit(rewards: tf.Tensor) -> tf.Tensor:
    """Clips rewards to [-1, 1], as in DQN on Atari (Mnih et al. 2015)."""
    return tf.clip_by_value(rewards, -1.0, 1.0)


def optimistic_asymmetric(rewards: tf.Tensor) -> tf.Tensor:
    """Returns 0.3 min(tanh r, 0) + 5 max(tanh r, 0), for DMLab (IMPALA, figure D.1).

    This clip multiplies small positive rewards by 5 and hardly distinguishes rewards above 2. The
    published code computes `soft_asymmetric` instead.
    """
    squashed = tf.tanh(rewards)
    return 0.3 * tf.minimum(squashed, 0.0) + 5.0 * tf.maximum(squashed, 0.0)


def soft_asymmetric(rewards: tf.Tensor) -> tf.Tensor:
    """Returns 5 tanh(r / 5), times 0.3 for negative rewards, as in the code of IMPALA for DMLab.

    This clip keeps small positive rewards and distinguishes 1 from 10.
    """
    squashed = 5.0 * tf.tanh(rewards / 5.0)
    return tf.where(rewards < 0, 0.3 * squashed, squashed)


REWARD_CLIPS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "none": tf.identity,
    "unit": unit,
    "optimistic_asymmetric": optimistic_asymmetric,
    "soft_asymmetric": soft_asymmetric,
}

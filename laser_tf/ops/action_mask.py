"""Masks of forbidden discrete actions.

Logits and Q-values of forbidden actions are replaced where a network computes them, so that all
later computations, and experience in replay, contain the mask. The replacement is finite:
probabilities are exactly 0, and p log p and log-ratios times p are 0 instead of NaN.
"""

import tensorflow as tf

FORBIDDEN = -1e9  # logit, log-probability or Q-value of a forbidden action


def allowed_actions(mask: tf.Tensor) -> tf.Tensor:
    """Returns the actions that a policy may take, bool [..., A].

    All actions are allowed where `mask`, bool [..., A], forbids all of them: in padding and after
    the end of an episode, where the environment ignores the action.
    """
    return mask | ~tf.reduce_any(mask, axis=-1, keepdims=True)


def apply(values: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    """Replaces values of forbidden actions, which receive no gradient.

    Args:
      values: Logits or Q-values, float32 [..., A].
      mask: True for allowed actions, bool [..., A]; None if no action is ever forbidden.
    """
    return values if mask is None else tf.where(allowed_actions(mask), values, FORBIDDEN)


def is_allowed(values: tf.Tensor) -> tf.Tensor:
    """Returns the allowed actions, bool [..., A], from results of `apply`."""
    return values > FORBIDDEN / 2


def log_probabilities(probabilities: tf.Tensor) -> tf.Tensor:
    """Returns log-probabilities float32 [..., A], `FORBIDDEN` without gradient for 0."""
    is_positive = probabilities > 0
    # The inner tf.where keeps log 0 out of the gradient, in which 0 * inf is NaN.
    logs = tf.math.log(tf.where(is_positive, probabilities, 1.0))
    return tf.where(is_positive, logs, FORBIDDEN)

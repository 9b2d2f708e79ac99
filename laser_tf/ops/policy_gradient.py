"""Losses of an actor-critic: policy gradient, baseline and entropy, all SUMS over time and batch.

The papers' learning rates and entropy costs assume sums (IMPALA; TensorFlow implementation).
Every function takes `mask`, float32 or bool [T, B]: false entries contribute neither loss nor
gradient, whatever the other arguments hold there.
"""

import tensorflow as tf


def _keep(mask: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Returns x [T, B, ...] with zeros where `mask` [T, B] is false.

    Losses mask their arguments before any arithmetic: behind it, the gradient would be 0 * NaN.
    """
    mask = tf.cast(mask, tf.bool)
    for _ in range(x.shape.rank - mask.shape.rank):
        mask = mask[..., None]
    return tf.where(mask, x, tf.zeros_like(x))


def policy_gradient_loss(
    logits: tf.Tensor, actions: tf.Tensor, weighted_advantages: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
    """- sum_t rho_t A_t log pi(a_t|x_t) (IMPALA, section 4.2; LASER, algorithm 1).

    Args:
      logits: float32 [T, B, A], of pi; receive the gradient.
      actions: int32 [T, B].
      weighted_advantages: float32 [T, B], rho_t A_t; no gradient flows into them.
      mask: bool [T, B].

    Returns:
      float32 [].
    """
    log_pi = tf.nn.log_softmax(_keep(mask, logits))
    log_pi = tf.gather(log_pi, actions, batch_dims=actions.shape.rank)
    return -tf.reduce_sum(log_pi * tf.stop_gradient(_keep(mask, weighted_advantages)))


def baseline_loss(values: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """1/2 sum_t (v_t - V(x_t))^2; float32 [T, B] each; gradient into `values` only."""
    return 0.5 * tf.reduce_sum(tf.square(_keep(mask, tf.stop_gradient(targets) - values)))


def entropy(logits: tf.Tensor) -> tf.Tensor:
    """Entropy of categorical policies in nats, at least 0: float32 [..., A] -> [...]."""
    log_pi = tf.nn.log_softmax(logits)
    return -tf.reduce_sum(tf.exp(log_pi) * log_pi, axis=-1)


def entropy_loss(logits: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Minus the summed entropy, so that minimising it keeps the policy random; [T, B, A] -> []."""
    return -tf.reduce_sum(_keep(mask, entropy(_keep(mask, logits))))

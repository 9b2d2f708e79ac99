"""Categorical policies by their logits float32 [..., A]."""

import tensorflow as tf


def log_probability(logits: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
    """Log-probability of actions: float32 [..., A], int32 [...] -> float32 [...]."""
    return tf.gather(tf.nn.log_softmax(logits), actions, batch_dims=actions.shape.rank)


def entropy(logits: tf.Tensor) -> tf.Tensor:
    """In nats, at least 0: float32 [..., A] -> [...]."""
    log_pi = tf.nn.log_softmax(logits)
    return -tf.reduce_sum(tf.exp(log_pi) * log_pi, axis=-1)


def kl_divergence(logits_p: tf.Tensor, logits_q: tf.Tensor) -> tf.Tensor:
    """KL(p || q) in nats: float32 [..., A], float32 [..., A] -> [...]."""
    log_p = tf.nn.log_softmax(logits_p)
    return tf.reduce_sum(tf.exp(log_p) * (log_p - tf.nn.log_softmax(logits_q)), axis=-1)


def log_importance_ratio(
    target_logits: tf.Tensor, behaviour_logits: tf.Tensor, actions: tf.Tensor
) -> tf.Tensor:
    """log(pi(a|x) / mu(a|x)).

    Args:
      target_logits: float32 [..., A], of pi.
      behaviour_logits: float32 [..., A], of mu.
      actions: int32 [...], drawn from mu.

    Returns:
      float32 [...].
    """
    difference = tf.nn.log_softmax(target_logits) - tf.nn.log_softmax(behaviour_logits)
    return tf.gather(difference, actions, batch_dims=actions.shape.rank)

"""Categorical policies, parameterised by logits float32 [..., A]."""

import tensorflow as tf


def log_probability(logits: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
    """Returns log-probabilities float32 [...] of actions int32 [...]."""
    return tf.gather(tf.nn.log_softmax(logits), actions, batch_dims=actions.shape.rank)


def entropy(logits: tf.Tensor) -> tf.Tensor:
    """Returns entropies in nats, float32 [...], at least 0."""
    log_pi = tf.nn.log_softmax(logits)
    return -tf.reduce_sum(tf.exp(log_pi) * log_pi, axis=-1)


def kl_divergence(logits_p: tf.Tensor, logits_q: tf.Tensor) -> tf.Tensor:
    """Returns KL(p || q) in nats, float32 [...]."""
    log_p = tf.nn.log_softmax(logits_p)
    return tf.reduce_sum(tf.exp(log_p) * (log_p - tf.nn.log_softmax(logits_q)), axis=-1)


def log_importance_ratio(
    target_logits: tf.Tensor, behaviour_logits: tf.Tensor, actions: tf.Tensor
) -> tf.Tensor:
    """Returns log(pi(a|x) / mu(a|x)), float32 [...], of actions int32 [...] sampled from mu."""
    difference = tf.nn.log_softmax(target_logits) - tf.nn.log_softmax(behaviour_logits)
    return tf.gather(difference, actions, batch_dims=actions.shape.rank)

"""Behaviour relevance: which transitions may teach the target policy (LASER, section 4).

A transition is trusted where beta(pi, mu, x) < b. Beta looks at the two policies at x, never at the
action that was sampled: a decision by the action would bias what is estimated (section 4.3).
"""

import math

import tensorflow as tf


def implied_policy_log_probabilities(
    target_logits: tf.Tensor, behaviour_logits: tf.Tensor, rho_bar: float = 1.0
) -> tf.Tensor:
    """Log-probabilities of the policy whose value V-trace estimates (LASER, equation 3).

        pi~_mu(a|x) = min(rho_bar mu(a|x), pi(a|x)) / sum_b min(rho_bar mu(b|x), pi(b|x))

    Args:
      target_logits: float32 [..., A], of pi.
      behaviour_logits: float32 [..., A], of mu.
      rho_bar: V-trace's clip of the importance ratios, above 0.

    Returns:
      float32 [..., A].
    """
    log_clipped = tf.minimum(
        math.log(rho_bar) + tf.nn.log_softmax(behaviour_logits),
        tf.nn.log_softmax(target_logits),
    )
    return tf.nn.log_softmax(log_clipped)


def kl_divergence(logits_p: tf.Tensor, logits_q: tf.Tensor) -> tf.Tensor:
    """KL(p || q) of categorical distributions: float32 [..., A], float32 [..., A] -> [...]."""
    log_p = tf.nn.log_softmax(logits_p)
    return tf.reduce_sum(tf.exp(log_p) * (log_p - tf.nn.log_softmax(logits_q)), axis=-1)


def behaviour_relevance(
    target_logits: tf.Tensor,
    behaviour_logits: tf.Tensor,
    *,
    relevance: str,
    rho_bar: float = 1.0,
) -> tf.Tensor:
    """The relevance function beta(pi, mu, x); the smaller, the more relevant mu is for pi.

    Args:
      target_logits: float32 [..., A], of pi; no gradient flows into them.
      behaviour_logits: float32 [..., A], of mu.
      relevance: "implied" for KL(pi || pi~_mu) (section 4.3), the divergence from V-trace's fixed
        point, or "behaviour" for KL(pi || mu) (algorithm 1).
      rho_bar: V-trace's clip, read by "implied".

    Returns:
      float32 [...], at least 0 up to rounding.

    Raises:
      ValueError: for any other `relevance`.
    """
    target_logits = tf.stop_gradient(target_logits)
    if relevance == "implied":
        implied = implied_policy_log_probabilities(target_logits, behaviour_logits, rho_bar)
        return kl_divergence(target_logits, implied)
    if relevance == "behaviour":
        return kl_divergence(target_logits, behaviour_logits)
    raise ValueError(f"relevance is {relevance!r}: choose 'implied' or 'behaviour'")

"""Behaviour relevance: which transitions may teach the target policy (LASER, section 4).

A transition is trusted where beta(pi, mu, x) < b. Beta looks at the two policies at x, never at the
action that was sampled: a decision by the action would bias what is estimated (section 4.3).
"""

import math

import tensorflow as tf

from laser_tf.ops import categorical


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


def implied_relevance(
    target_logits: tf.Tensor, behaviour_logits: tf.Tensor, rho_bar: float = 1.0
) -> tf.Tensor:
    """beta(pi, mu, x) = KL(pi || pi~_mu), the divergence from V-trace's fixed point (section 4.3).

    Algorithm 1 prints KL(pi || mu) instead, which every action distribution has.

    Args:
      target_logits: float32 [..., A], of pi; no gradient flows into them.
      behaviour_logits: float32 [..., A], of mu.
      rho_bar: V-trace's clip.

    Returns:
      float32 [...], at least 0 up to rounding; the smaller, the more relevant mu is for pi.
    """
    target_logits = tf.stop_gradient(target_logits)
    implied = implied_policy_log_probabilities(target_logits, behaviour_logits, rho_bar)
    return categorical.kl_divergence(target_logits, implied)

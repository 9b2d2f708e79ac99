"""Behaviour relevance, which defines the trust region of LASER (section 4).

The trust region contains transitions with beta(pi, mu, x) < b. The relevance beta depends on both
policies at x but not on the sampled action, because that would bias the estimate (section 4.3).
"""

import math

import tensorflow as tf

from laser_tf.ops import categorical


def implied_policy_log_probabilities(
    target_logits: tf.Tensor, behaviour_logits: tf.Tensor, rho_bar: float = 1.0
) -> tf.Tensor:
    """Returns log-probabilities [..., A] of the policy that V-trace evaluates (LASER, equation 3).

        pi~_mu(a|x) = min(rho_bar mu(a|x), pi(a|x)) / sum_b min(rho_bar mu(b|x), pi(b|x))

    Args:
      target_logits: Logits of the target policy pi, float32 [..., A].
      behaviour_logits: Logits of the behaviour policy mu, float32 [..., A].
      rho_bar: Clip of the importance ratios in V-trace, above 0.
    """
    log_clipped = tf.minimum(
        math.log(rho_bar) + tf.nn.log_softmax(behaviour_logits),
        tf.nn.log_softmax(target_logits),
    )
    return tf.nn.log_softmax(log_clipped)


def implied_relevance(
    target_logits: tf.Tensor, behaviour_logits: tf.Tensor, rho_bar: float = 1.0
) -> tf.Tensor:
    """Returns beta(pi, mu, x) = KL(pi || pi~_mu), float32 [...] (section 4.3).

    A small beta means that behaviour mu is relevant for pi. Algorithm 1 prints KL(pi || mu)
    instead, which is defined for all action distributions.

    Args:
      target_logits: Logits of the target policy pi, float32 [..., A]; receive no gradient.
      behaviour_logits: Logits of the behaviour policy mu, float32 [..., A].
      rho_bar: Clip of the importance ratios in V-trace, above 0.
    """
    target_logits = tf.stop_gradient(target_logits)
    implied = implied_policy_log_probabilities(target_logits, behaviour_logits, rho_bar)
    return categorical.kl_divergence(target_logits, implied)

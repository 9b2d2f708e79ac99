"""Losses of an actor-critic: policy gradient, baseline and entropy, all SUMS over time and batch.

The papers' learning rates and entropy costs assume sums (IMPALA; TensorFlow implementation).
Every function takes `mask`, float32 or bool [T, B]: false entries contribute neither loss nor
gradient, whatever the other arguments hold there. (What they were computed from is masked by
whoever computes it: see `masking.keep`.)
"""

import tensorflow as tf

from laser_tf.ops import masking


def policy_gradient_loss(
    log_probs: tf.Tensor, weighted_advantages: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
    """- sum_t rho_t A_t log pi(a_t|x_t) (IMPALA, section 4.2; LASER, algorithm 1).

    Args:
      log_probs: float32 [T, B], log pi(a_t|x_t); receive the gradient.
      weighted_advantages: float32 [T, B], rho_t A_t; no gradient flows into them.
      mask: bool [T, B].

    Returns:
      float32 [].
    """
    weights = tf.stop_gradient(masking.keep(mask, weighted_advantages))
    return -tf.reduce_sum(masking.keep(mask, log_probs) * weights)


def baseline_loss(values: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """1/2 sum_t (v_t - V(x_t))^2; float32 [T, B] each; gradient into `values` only."""
    errors = masking.keep(mask, tf.stop_gradient(targets) - values)
    return 0.5 * tf.reduce_sum(tf.square(errors))


def entropy_loss(entropies: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Minus the summed entropies float32 [T, B]: minimising it keeps the policy random."""
    return -tf.reduce_sum(masking.keep(mask, entropies))

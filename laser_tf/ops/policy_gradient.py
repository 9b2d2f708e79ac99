"""Actor-critic losses for policy, baseline and entropy, SUMMED over time and batch.

Learning rates and entropy costs of IMPALA and its TensorFlow implementation assume sums.

Steps where `mask`, bool [T, B], is false contribute neither loss nor gradient. Other
arguments may have any values there. Callers must mask the inputs of these arguments, too, if they
may be NaN (see `masking.keep`).
"""

import tensorflow as tf

from laser_tf.ops import masking


def policy_gradient_loss(
    log_probs: tf.Tensor, weighted_advantages: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
    """Returns - sum_t rho_t A_t log pi(a_t|x_t), float32 [].

    See IMPALA, section 4.2, and LASER, algorithm 1.

    Args:
      log_probs: Log-probabilities log pi(a_t|x_t), float32 [T, B]; receive the gradient.
      weighted_advantages: Advantages rho_t A_t, float32 [T, B]; receive no gradient.
      mask: Mask of the steps, bool [T, B].
    """
    weights = tf.stop_gradient(masking.keep(mask, weighted_advantages))
    return -tf.reduce_sum(masking.keep(mask, log_probs) * weights)


def baseline_loss(
    values: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor, weight: tf.Tensor | float = 1.0
) -> tf.Tensor:
    """Returns 1/2 sum_t w_t (v_t - V(x_t))^2, float32 []; only `values` receive a gradient."""
    root = tf.sqrt(weight)
    errors = masking.keep(mask, tf.stop_gradient(root * targets) - root * values)
    return 0.5 * tf.reduce_sum(tf.square(errors))


def entropy_loss(entropies: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns minus the sum of entropies float32 [T, B]; its descent raises the entropy."""
    return -tf.reduce_sum(masking.keep(mask, entropies))

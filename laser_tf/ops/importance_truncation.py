"""Truncated importance ratios with bias correction (ACER, section 3.2).

    E_mu[rho f(a)] = E_mu[min(c, rho) f(a)] + E_pi[ [1 - c / rho(a)]_+ f(a) ]     (equation 7)

The two weights are at most c and 1. No gradient flows through them.
"""

import math

import tensorflow as tf


def truncated_ratios(log_rhos: tf.Tensor, c: float) -> tf.Tensor:
    """Returns min(c, rho), float32 [...], from log(pi(a|x) / mu(a|x)), a sampled from mu."""
    return tf.stop_gradient(tf.exp(tf.minimum(log_rhos, math.log(c))))


def correction_weights(log_rhos: tf.Tensor, c: float) -> tf.Tensor:
    """Returns [1 - c / rho]_+, float32 [...], from log(pi(a|x) / mu(a|x)), a sampled from pi."""
    return tf.stop_gradient(tf.nn.relu(1 - tf.exp(math.log(c) - log_rhos)))


def truncated_products(
    log_rhos: tf.Tensor, discounts: tf.Tensor, is_transition: tf.Tensor, c: float
) -> tf.Tensor:
    """Returns min(c, rho_t rho_{t+1} ...) over the remaining steps of a return.

        log w_t = log rho_t + [gamma_t > 0] log w_{t+1},    log w_T = 0

    The product w_t is truncated, not its factors (ACER, appendix E.2).

    Args:
      log_rhos: Log importance ratios log(pi(a_t|x_t) / mu(a_t|x_t)), float32 [T, B].
      discounts: Discounts gamma_t of the value after the transition, float32 [T, B]. A discount of
        0 ends the return, also within an episode if a life is lost.
      is_transition: Mask, bool [T, B]. Where it is false, `log_rhos` is not read and the product
        ends.
      c: Truncation of the products.

    Returns:
      Weights, float32 [T, B]. The caller must mask them where `is_transition` is false.
    """
    log_rhos = tf.where(is_transition, log_rhos, 0.0)
    total = tf.zeros_like(log_rhos[0])
    reversed_sums = []
    for t in reversed(range(log_rhos.shape[0])):
        rest = tf.where(discounts[t] > 0, total, 0.0)
        total = tf.where(is_transition[t], log_rhos[t] + rest, 0.0)
        reversed_sums.append(total)
    return truncated_ratios(tf.stack(reversed_sums[::-1]), c)

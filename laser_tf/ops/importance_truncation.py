"""Truncated importance ratios, and what corrects the bias of truncating them (ACER, section 3.2).

    E_mu[rho f(a)] = E_mu[min(c, rho) f(a)] + E_pi[ [1 - c / rho(a)]_+ f(a) ]     (equation 7)

Both weights are bounded, by c and by 1. No gradient flows into any of them.
"""

import math

import tensorflow as tf


def truncated(log_rhos: tf.Tensor, c: float) -> tf.Tensor:
    """min(c, rho): float32 [...], log(pi(a|x) / mu(a|x)) of actions drawn from mu -> [...]."""
    return tf.stop_gradient(tf.exp(tf.minimum(log_rhos, math.log(c))))


def correction(log_rhos: tf.Tensor, c: float) -> tf.Tensor:
    """[1 - c / rho]_+: float32 [...], log(pi(a|x) / mu(a|x)) of actions drawn from pi -> [...]."""
    return tf.stop_gradient(tf.nn.relu(1 - tf.exp(math.log(c) - log_rhos)))


def truncated_products(
    log_rhos: tf.Tensor, discounts: tf.Tensor, is_transition: tf.Tensor, c: float
) -> tf.Tensor:
    """min(c, rho_t rho_{t+1} ... ), over the steps of a return's rewards (ACER, appendix E.2).

        log w_t = log rho_t + [gamma_t > 0] log w_{t+1},    log w_T = 0

    Args:
      log_rhos: float32 [T, B], log(pi(a_t|x_t) / mu(a_t|x_t)).
      discounts: float32 [T, B], gamma_t, of the value after the transition; where it is 0 the
        return ends, within an episode, too: at a life's loss.
      is_transition: bool [T, B]; where it is false, `log_rhos` is not read and a product ends.
      c: where the products are truncated; they are of the whole rest, not of truncated factors.

    Returns:
      float32 [T, B]; to be masked by the caller where there is no transition.
    """
    log_rhos = tf.where(is_transition, log_rhos, 0.0)
    total = tf.zeros_like(log_rhos[0])
    reversed_sums = []
    for t in reversed(range(log_rhos.shape[0])):
        rest = tf.where(discounts[t] > 0, total, 0.0)
        total = tf.where(is_transition[t], log_rhos[t] + rest, 0.0)
        reversed_sums.append(total)
    return truncated(tf.stack(reversed_sums[::-1]), c)

"""V-trace (Espeholt et al. 2018, "IMPALA") with a trust region (Schmitt et al. 2020, "LASER").

See `laser_tf.types` for the time indices of `[T, B]` arguments.
"""

from typing import NamedTuple

import tensorflow as tf


class VTraceOutput(NamedTuple):
    """V-trace targets, advantages and ratios, all without gradient."""

    values: tf.Tensor  # float32 [T, B], targets v_t of the value function
    advantages: tf.Tensor  # float32 [T, B], r_t + gamma_t v_{t+1} - V(x_t), not weighted by rho_t
    rhos: tf.Tensor  # float32 [T, B], clipped importance ratios rho_t


def vtrace(
    log_rhos: tf.Tensor,
    discounts: tf.Tensor,
    rewards: tf.Tensor,
    values: tf.Tensor,
    trusted: tf.Tensor,
    *,
    rho_bar: float = 1.0,
    c_bar: float = 1.0,
    lambda_: float = 1.0,
) -> VTraceOutput:
    """Computes V-trace with the trust-region mask inside the recursion (LASER, equation 8).

        G_t = V(x_t)
              + sum_k gamma^k (prod_{i<k} lambda_{t+i} c_{t+i}) lambda_{t+k} rho_{t+k} delta_{t+k}

    The sum is computed backwards in time:

        acc_t = lambda_t (rho_t delta_t + gamma_t c_t acc_{t+1}),    acc_T = 0
        v_t   = V(x_t) + acc_t
        delta_t = r_t + gamma_t V(x_{t+1}) - V(x_t)
        rho_t = min(rho_bar, pi/mu),   c_t = lambda_ min(c_bar, pi/mu)

    If `trusted` is true everywhere, this is V-trace of IMPALA (section 4.1, remark 1). The policy
    gradient uses rho_t times the advantage r_t + gamma_t v_{t+1} - V(x_t) (IMPALA, section 4.2).
    Both factors are returned separately.

    Args:
      log_rhos: Log importance ratios log(pi(a_t|x_t) / mu(a_t|x_t)), float32 [T, B].
      discounts: Discounts gamma_t, float32 [T, B]: gamma times the discount received with x_{t+1}.
      rewards: Rewards r_t received with x_{t+1}, float32 [T, B].
      values: Values V(x_0) .. V(x_T), float32 [T + 1, B]. V(x_T) is the bootstrap value.
      trusted: Mask lambda_t, bool [T, B], false outside the trust region and between episodes.
        Where it is false, only `values` are read, to bootstrap earlier transitions.
      rho_bar: Clip of the ratios rho_t; determines the fixed point.
      c_bar: Clip of the traces c_t; determines the speed of contraction.
      lambda_: Factor of the traces, in [0, 1].

    Returns:
      V-trace outputs. Those of untrusted steps are finite, but the caller must mask them.
    """
    zeros = tf.zeros_like(rewards)
    # tf.where instead of a product, because NaN * 0 is NaN.
    ratios = tf.where(trusted, tf.exp(log_rhos), zeros)
    rewards = tf.where(trusted, rewards, zeros)
    discounts = tf.where(trusted, discounts, zeros)
    rhos = tf.minimum(rho_bar, ratios)
    traces = lambda_ * tf.minimum(c_bar, ratios)
    deltas = rhos * (rewards + discounts * values[1:] - values[:-1])

    # `deltas` and `traces` already include lambda_t, because ratios of untrusted steps are 0. This
    # is a Python loop, because T is static and small and XLA fuses the T steps.
    accumulated = tf.zeros_like(values[-1])
    reversed_sums = []
    for t in reversed(range(rewards.shape[0])):
        accumulated = deltas[t] + discounts[t] * traces[t] * accumulated
        reversed_sums.append(accumulated)
    targets = values[:-1] + tf.stack(reversed_sums[::-1])

    next_targets = tf.concat([targets[1:], values[-1:]], axis=0)
    advantages = rewards + discounts * next_targets - values[:-1]
    return VTraceOutput(
        values=tf.stop_gradient(targets),
        advantages=tf.stop_gradient(advantages),
        rhos=tf.stop_gradient(rhos),
    )

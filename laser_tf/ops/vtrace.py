"""V-trace (Espeholt et al. 2018, "IMPALA") with a trust region (Schmitt et al. 2020, "LASER").

All arguments follow `laser_tf.types`: index t of a `[T, B]` argument belongs to the transition from
x_t to x_{t+1}, so rewards and discounts are rows 1..T of an unroll.
"""

from typing import NamedTuple

import tensorflow as tf


class VTraceOutput(NamedTuple):
    """V-trace targets; no gradient flows into any of them."""

    values: tf.Tensor  # float32 [T, B], the targets v_t of the value function
    advantages: tf.Tensor  # float32 [T, B], r_t + gamma_t v_{t+1} - V(x_t); not yet times rho_t
    rhos: tf.Tensor  # float32 [T, B], the clipped importance ratios rho_t


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
    """V-trace with the trust-region mask inside the recursion (LASER, equation 8).

    G_t = V(x_t)
          + sum_k gamma^k (prod_{i<k} lambda_{t+i} c_{t+i}) lambda_{t+k} rho_{t+k} delta_{t+k},
    computed backwards as

        acc_t = lambda_t (rho_t delta_t + gamma_t c_t acc_{t+1}),    acc_T = 0
        v_t   = V(x_t) + acc_t
        delta_t = r_t + gamma_t V(x_{t+1}) - V(x_t)
        rho_t = min(rho_bar, pi/mu),   c_t = lambda_ min(c_bar, pi/mu)

    With `trusted` true everywhere this is IMPALA's V-trace (section 4.1, remark 1). The policy
    gradient's advantage is r_t + gamma_t v_{t+1} - V(x_t) (IMPALA, section 4.2); its factor rho_t
    is returned beside it.

    Args:
      log_rhos: float32 [T, B], log(pi(a_t|x_t) / mu(a_t|x_t)).
      discounts: float32 [T, B], gamma times the discount that arrived with x_{t+1}.
      rewards: float32 [T, B], that arrived with x_{t+1}.
      values: float32 [T + 1, B], V(x_0) .. V(x_T); the last row is the bootstrap value.
      trusted: bool [T, B], lambda_t of the equation: false for transitions outside the trust region
        and for steps that are no transitions. What the other arguments hold there is never read,
        save `values`, which still bootstrap the transitions before them.
      rho_bar: clip of the ratios in front of the temporal differences; decides the fixed point.
      c_bar: clip of the trace ratios; decides the speed of contraction.
      lambda_: a further factor on the traces, in [0, 1].

    Returns:
      A `VTraceOutput`. Entries of untrusted transitions are finite and to be masked by the caller.
    """
    zeros = tf.zeros_like(rewards)
    # tf.where rather than a product: NaN * 0 would be NaN.
    ratios = tf.where(trusted, tf.exp(log_rhos), zeros)
    rewards = tf.where(trusted, rewards, zeros)
    discounts = tf.where(trusted, discounts, zeros)
    rhos = tf.minimum(rho_bar, ratios)
    traces = lambda_ * tf.minimum(c_bar, ratios)
    deltas = rhos * (rewards + discounts * values[1:] - values[:-1])

    # The ratios of untrusted steps are zero, so lambda_t is already inside `deltas` and `traces`.
    # Unrolled: T is static and small, and XLA fuses the T steps.
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

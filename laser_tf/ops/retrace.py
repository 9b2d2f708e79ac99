"""Retrace (Munos et al. 2016), the multi-step estimate of Q^pi from experience of another policy.

All arguments follow `laser_tf.types`: index t of a `[T, B]` argument belongs to the transition from
x_t to x_{t+1}, so rewards and discounts are rows 1..T of an unroll.
"""

import tensorflow as tf


def retrace(
    rewards: tf.Tensor,
    discounts: tf.Tensor,
    q_taken: tf.Tensor,
    values: tf.Tensor,
    traces: tf.Tensor,
    is_transition: tf.Tensor,
) -> tf.Tensor:
    """Q^ret(x_t, a_t) (ACER, equation 5).

    Computed backwards as

        Q^ret_t = r_t + gamma_t (V(x_{t+1}) + c_{t+1} (Q^ret_{t+1} - Q(x_{t+1}, a_{t+1})))

    with Q^ret_T - Q_T = 0. Retrace's traces are c_t = lambda min(1, pi/mu) (equation 5 prints
    min(c, pi/mu) with the c that truncates the policy gradient; algorithm 2 has 1); with c_t = 1 it
    is Q(lambda) with off-policy corrections, Q^opc (equation 21); with c_t = 0 the one-step target.

    Args:
      rewards: float32 [T, B], that arrived with x_{t+1}.
      discounts: float32 [T, B], gamma times the discount that arrived with x_{t+1}.
      q_taken: float32 [T, B], Q(x_t, a_t).
      values: float32 [T + 1, B], V(x_0) .. V(x_T), of Q under pi; the last row is the bootstrap.
      traces: float32 [T, B], c_t; the first row is not used.
      is_transition: bool [T, B]; where it is false, nothing but `values` is read, and no return
        goes past it.

    Returns:
      float32 [T, B]; no gradient flows into it. Where there is no transition it is finite and to be
      masked by the caller.
    """
    zeros = tf.zeros_like(rewards)
    # tf.where rather than a product: NaN * 0 would be NaN.
    rewards = tf.where(is_transition, rewards, zeros)
    discounts = tf.where(is_transition, discounts, zeros)
    q_taken = tf.where(is_transition, q_taken, zeros)
    traces = tf.where(is_transition, traces, zeros)

    # c_t (Q^ret_t - Q(x_t, a_t)); unrolled: T is static and small, and XLA fuses the T steps.
    correction = tf.zeros_like(values[-1])
    reversed_targets = []
    for t in reversed(range(rewards.shape[0])):
        target = rewards[t] + discounts[t] * (values[t + 1] + correction)
        reversed_targets.append(target)
        correction = traces[t] * (target - q_taken[t])
    return tf.stop_gradient(tf.stack(reversed_targets[::-1]))

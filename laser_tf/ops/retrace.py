"""Retrace, an off-policy multi-step estimate of Q^pi (Munos et al. 2016).

See `laser_tf.types` for the time indices of `[T, B]` arguments.
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
    """Returns targets Q^ret(x_t, a_t) (ACER, equation 5).

    The targets are computed backwards in time, with Q^ret_T - Q_T = 0:

        Q^ret_t = r_t + gamma_t (V(x_{t+1}) + c_{t+1} (Q^ret_{t+1} - Q(x_{t+1}, a_{t+1})))

    The traces select the target. Retrace has c_t = lambda min(1, pi/mu), as in algorithm 2.
    (Equation 5 prints min(c, pi/mu), where c is the truncation of the policy gradient.) Traces of 1
    give Q(lambda) with off-policy corrections, Q^opc (equation 21). Traces of 0 give one-step
    targets.

    Args:
      rewards: Rewards r_t received with x_{t+1}, float32 [T, B].
      discounts: Discounts gamma_t, float32 [T, B]: gamma times the discount received with x_{t+1}.
      q_taken: Action values Q(x_t, a_t), float32 [T, B].
      values: Expectations V(x_0) .. V(x_T) of Q under pi, float32 [T + 1, B]. V(x_T) is the
        bootstrap value.
      traces: Traces c_t, float32 [T, B]; step 0 is not used.
      is_transition: Mask, bool [T, B]. Where it is false, only `values` are read, and the returns
        of earlier steps end.

    Returns:
      Targets without gradient, float32 [T, B]. The caller must mask them where `is_transition` is
      false; they are finite there.
    """
    zeros = tf.zeros_like(rewards)
    # tf.where instead of a product, because NaN * 0 is NaN.
    rewards = tf.where(is_transition, rewards, zeros)
    discounts = tf.where(is_transition, discounts, zeros)
    q_taken = tf.where(is_transition, q_taken, zeros)
    traces = tf.where(is_transition, traces, zeros)

    correction = tf.zeros_like(values[-1])  # c_t (Q^ret_t - Q(x_t, a_t))
    reversed_targets = []
    # A Python loop, because T is static and small and XLA fuses the T steps.
    for t in reversed(range(rewards.shape[0])):
        target = rewards[t] + discounts[t] * (values[t + 1] + correction)
        reversed_targets.append(target)
        correction = traces[t] * (target - q_taken[t])
    return tf.stop_gradient(tf.stack(reversed_targets[::-1]))

"""n-step double Q-learning over sequences (Kapturowski et al. 2019, "R2D2").

See `laser_tf.types` for the time indices of `[T, B]` arguments.
"""

import tensorflow as tf

from laser_tf.ops import value_rescaling

MIN_PRIORITY = 1e-6  # above 0, because replay never samples items with priority 0


def n_step_returns(
    rewards: tf.Tensor,
    discounts: tf.Tensor,
    bootstrap_values: tf.Tensor,
    is_transition: tf.Tensor,
    n: int,
) -> tf.Tensor:
    """Computes n-step returns, with fewer steps if the sequence or the episode ends earlier.

        G^0_t = V(x_t)
        G^k_t = r_t + gamma_t G^{k-1}_{t+1}    if x_t -> x_{t+1} is a transition,
                V(x_t)                         otherwise and at t = T

    Termination has gamma_t = 0, which ends the return. After a time limit the return bootstraps
    from the last state of the episode.

    Args:
      rewards: Rewards r_t received with x_{t+1}, float32 [T, B].
      discounts: Discounts gamma_t, float32 [T, B]: gamma times the discount received with x_{t+1}.
      bootstrap_values: Values V(x_0) .. V(x_T), float32 [T + 1, B]. They must be finite even where
        the discount is 0.
      is_transition: Mask, bool [T, B], false if x_{t+1} starts an episode. Rewards and discounts
        are not read there.
      n: Number of steps.

    Returns:
      Returns G^n_0 .. G^n_{T-1} without gradient, float32 [T, B]. The caller must mask them where
      `is_transition` is false; they are V(x_t) there.
    """
    returns = bootstrap_values
    for _ in range(n):
        one_step_longer = rewards + discounts * returns[1:]
        # tf.where instead of a product, because NaN * 0 is NaN.
        longer = tf.where(is_transition, one_step_longer, bootstrap_values[:-1])
        returns = tf.concat([longer, bootstrap_values[-1:]], axis=0)
    return tf.stop_gradient(returns[:-1])


def double_q_targets(
    q_online: tf.Tensor,
    q_target: tf.Tensor,
    rewards: tf.Tensor,
    discounts: tf.Tensor,
    is_transition: tf.Tensor,
    n: int,
    rescaling_epsilon: float | None,
) -> tf.Tensor:
    """Computes targets of Q(x_t, a_t) (R2D2, section 2.3).

        y_t = h(sum_{k<n} gamma^k r_{t+k} + gamma^n h^-1(Q_target(x_{t+n}, a*)))
        a* = argmax_a Q_online(x_{t+n}, a)

    Sums are shorter at the end of an episode or sequence, as in `n_step_returns`. The module
    `value_rescaling` defines h.

    Args:
      q_online: Q-values of the online network, float32 [T + 1, B, A]; they select the actions.
      q_target: Q-values of the target network, float32 [T + 1, B, A]; they evaluate the actions.
      rewards: Rewards, see `n_step_returns`.
      discounts: Discounts, see `n_step_returns`.
      is_transition: Mask, see `n_step_returns`.
      n: Number of steps, 5 in the paper.
      rescaling_epsilon: Epsilon of h, 1e-3 in the paper. With None, h is the identity, as in the
        variant of the paper with clipped rewards.

    Returns:
      Rescaled targets without gradient, float32 [T, B]. The caller must mask them where
      `is_transition` is false.
    """
    values = tf.gather(q_target, tf.argmax(q_online, axis=-1), batch_dims=2)
    if rescaling_epsilon is None:
        return n_step_returns(rewards, discounts, values, is_transition, n)
    values = value_rescaling.unrescale(values, rescaling_epsilon)
    returns = n_step_returns(rewards, discounts, values, is_transition, n)
    return value_rescaling.rescale(returns, rescaling_epsilon)


def sequence_priorities(td_errors: tf.Tensor, mask: tf.Tensor, eta: float) -> tf.Tensor:
    """Returns priorities of sequences, float32 [B], at least `MIN_PRIORITY` (R2D2, section 2.3).

        p = eta max_t |delta_t| + (1 - eta) mean_t |delta_t|

    Args:
      td_errors: TD errors delta_t = y_t - Q(x_t, a_t), float32 [T, B]; receive no gradient.
      mask: Mask of the steps to include, bool [T, B]. Errors are not read where it is false.
      eta: Weight of the largest error, 0.9 in the paper.
    """
    errors = tf.where(mask, tf.abs(tf.stop_gradient(td_errors)), 0.0)
    counts = tf.reduce_sum(tf.cast(mask, tf.float32), axis=0)
    means = tf.reduce_sum(errors, axis=0) / tf.maximum(counts, 1.0)
    priorities = eta * tf.reduce_max(errors, axis=0) + (1.0 - eta) * means
    return tf.maximum(priorities, MIN_PRIORITY)

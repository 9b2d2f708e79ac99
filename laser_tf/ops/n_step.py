"""n-step double Q-learning over sequences (Kapturowski et al. 2019, "R2D2").

All arguments follow `laser_tf.types`: index t of a `[T, B]` argument belongs to the transition from
x_t to x_{t+1}, so rewards and discounts are rows 1..T of an unroll.
"""

import tensorflow as tf

from laser_tf.ops import value_rescaling

SMALLEST_PRIORITY = 1e-6  # of a sequence without any error: replay draws only what is above 0


def n_step_returns(
    rewards: tf.Tensor,
    discounts: tf.Tensor,
    bootstrap_values: tf.Tensor,
    is_transition: tf.Tensor,
    n: int,
) -> tf.Tensor:
    """Returns over n steps, or as many as there are before the sequence or an episode ends.

        G^0_t = V(x_t)
        G^k_t = r_t + gamma_t G^{k-1}_{t+1}    if x_t -> x_{t+1} is a transition,
                V(x_t)                         otherwise and at t = T

    A true end has gamma_t = 0 and cuts the return there. After a time limit the episode's last
    state bootstraps, since no transition leaves it. Near the end returns have fewer steps.

    Args:
      rewards: float32 [T, B], that arrived with x_{t+1}.
      discounts: float32 [T, B], gamma times the discount that arrived with x_{t+1}.
      bootstrap_values: float32 [T + 1, B], V(x_0) .. V(x_T), all finite: a discount of 0
        multiplies them.
      is_transition: bool [T, B], false where x_{t+1} opens an episode: rewards and discounts of
        such a step are never read.
      n: number of steps.

    Returns:
      float32 [T, B], G^n_0 .. G^n_{T-1}; no gradient flows into them. Where `is_transition` is
      false they are V(x_t), to be masked by the caller.
    """
    returns = bootstrap_values
    for _ in range(n):
        one_step_longer = rewards + discounts * returns[1:]
        # tf.where rather than a product: NaN * 0 would be NaN.
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
    """The targets of Q(x_t, a_t) (R2D2, section 2.3).

        y_t = h(sum_{k<n} gamma^k r_{t+k} + gamma^n h^-1(Q_target(x_{t+n}, a*)))
        a* = argmax_a Q_online(x_{t+n}, a)

    with the sum ending earlier as in `n_step_returns` and h of `value_rescaling`.

    Args:
      q_online: float32 [T + 1, B, A], of the network that learns; chooses the actions.
      q_target: float32 [T + 1, B, A], of the target network; values them.
      rewards: float32 [T, B], as in `n_step_returns`.
      discounts: float32 [T, B], as in `n_step_returns`.
      is_transition: bool [T, B], as in `n_step_returns`.
      n: number of steps, 5 in the paper.
      rescaling_epsilon: of h, 1e-3 in the paper; None: h is the identity, as in the paper's variant
        with clipped rewards.

    Returns:
      float32 [T, B], rescaled as Q is; no gradient flows into them. Where `is_transition` is false
      they are to be masked by the caller.
    """
    values = tf.gather(q_target, tf.argmax(q_online, axis=-1), batch_dims=2)
    if rescaling_epsilon is None:
        return n_step_returns(rewards, discounts, values, is_transition, n)
    values = value_rescaling.unrescale(values, rescaling_epsilon)
    returns = n_step_returns(rewards, discounts, values, is_transition, n)
    return value_rescaling.rescale(returns, rescaling_epsilon)


def sequence_priorities(td_errors: tf.Tensor, mask: tf.Tensor, eta: float) -> tf.Tensor:
    """Each sequence's priority, a mixture of its largest and its mean error (R2D2, section 2.3).

        p = eta max_t |delta_t| + (1 - eta) mean_t |delta_t|

    Args:
      td_errors: float32 [T, B], delta_t = y_t - Q(x_t, a_t); no gradient flows into them.
      mask: bool [T, B]; false entries are not read and do not count in the mean.
      eta: the share of the largest error, 0.9 in the paper.

    Returns:
      float32 [B], at least `SMALLEST_PRIORITY`.
    """
    errors = tf.where(mask, tf.abs(tf.stop_gradient(td_errors)), 0.0)
    counts = tf.reduce_sum(tf.cast(mask, tf.float32), axis=0)
    means = tf.reduce_sum(errors, axis=0) / tf.maximum(counts, 1.0)
    priorities = eta * tf.reduce_max(errors, axis=0) + (1.0 - eta) * means
    return tf.maximum(priorities, SMALLEST_PRIORITY)

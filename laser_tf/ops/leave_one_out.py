"""Policy gradients that use all actions' values (Gruslys et al. 2018, "The Reactor", section 3.1).

All estimate G = sum_a Q^pi(x_t, a) grad pi(a|x_t) from an action a_t drawn from mu and a return R_t
of it. Each function takes probabilities, which receive the gradient, and returns a loss float32
[T, B] for each step, whose gradient is minus the estimate: to be weighted and summed by the caller.

`mask`, bool [T, B]: false entries contribute neither loss nor gradient, whatever the other
arguments hold there.
"""

import tensorflow as tf

from laser_tf.ops import masking


def beta_leave_one_out(
    pi: tf.Tensor,
    q_values: tf.Tensor,
    returns: tf.Tensor,
    actions: tf.Tensor,
    mu_taken: tf.Tensor,
    mask: tf.Tensor,
    clip: float = 1.0,
) -> tf.Tensor:
    """beta-LOO (equation 10).

        G = beta_t (R_t - Q(x_t, a_t)) grad pi(a_t|x_t) + sum_a Q(x_t, a) grad pi(a|x_t)
        beta_t = min(clip, 1 / mu(a_t|x_t))

    A clip of 1 is leave-one-out (equation 9), what the paper's results are of; an infinite one is
    1/mu-LOO (equation 11), without bias whatever Q is.

    Args:
      pi: float32 [T, B, A], of the target policy; receives the gradient.
      q_values: float32 [T, B, A], Q(x_t, a).
      returns: float32 [T, B], R_t, e.g. of Retrace.
      actions: int32 [T, B], drawn from mu.
      mu_taken: float32 [T, B], mu(a_t|x_t).
      mask: bool [T, B].
      clip: c, at least 1.

    Returns:
      float32 [T, B]; no gradient flows into `q_values`, `returns` and `mu_taken`.
    """
    pi, q_values, returns = (masking.keep(mask, x) for x in (pi, q_values, returns))
    actions, mu_taken = masking.keep(mask, actions), tf.where(mask, mu_taken, 1.0)
    beta = tf.minimum(clip, 1.0 / mu_taken)
    taken = tf.one_hot(actions, pi.shape[-1])
    q_taken = tf.gather(q_values, actions, axis=-1, batch_dims=2)
    weights = q_values + (beta * (returns - q_taken))[..., None] * taken
    return -tf.reduce_sum(tf.stop_gradient(weights) * pi, axis=-1)


def truncated_importance_sampling(
    pi: tf.Tensor,
    q_values: tf.Tensor,
    returns: tf.Tensor,
    actions: tf.Tensor,
    mu: tf.Tensor,
    mask: tf.Tensor,
    clip: float,
) -> tf.Tensor:
    """TISLR, the estimate that beta-LOO is compared with, ACER's (section 3.1).

        G = min(c, rho(a_t)) (R_t - V) grad log pi(a_t|x_t)
            + sum_a (rho(a) - c)_+ mu(a|x_t) (Q(x_t, a) - V) grad log pi(a|x_t)
        rho(a) = pi(a|x_t) / mu(a|x_t),    V = sum_a pi(a|x_t) Q(x_t, a)

    Args:
      pi: float32 [T, B, A], of the target policy, above 0; receives the gradient.
      q_values: float32 [T, B, A], Q(x_t, a).
      returns: float32 [T, B], R_t, e.g. of Retrace.
      actions: int32 [T, B], drawn from mu.
      mu: float32 [T, B, A], of the behaviour policy.
      mask: bool [T, B].
      clip: c; infinite: plain importance sampling, without bias.

    Returns:
      float32 [T, B]; no gradient flows into `q_values`, `returns` and `mu`.
    """
    q_values, returns, actions, mu = (
        masking.keep(mask, x) for x in (q_values, returns, actions, mu)
    )
    log_pi = tf.math.log(tf.where(mask[..., None], pi, tf.ones_like(pi)))
    constant = tf.stop_gradient(masking.keep(mask, pi))
    value = tf.reduce_sum(constant * q_values, axis=-1)
    taken = tf.one_hot(actions, pi.shape[-1])
    pi_taken, mu_taken = (
        tf.gather(x, actions, axis=-1, batch_dims=2)
        for x in (constant, tf.where(mask[..., None], mu, 1.0))
    )
    rho = tf.minimum(clip, pi_taken / mu_taken)
    # (rho(a) - c)_+ mu(a) without the quotient; no action exceeds an infinite clip.
    excess = tf.nn.relu(constant - clip * mu) if clip < float("inf") else tf.zeros_like(mu)
    weights = (rho * (returns - value))[..., None] * taken
    weights += excess * (q_values - value[..., None])
    return -tf.reduce_sum(tf.stop_gradient(weights) * log_pi, axis=-1)

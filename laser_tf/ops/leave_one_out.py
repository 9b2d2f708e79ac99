"""Policy gradients from values of all actions (Gruslys et al. 2018, "The Reactor", section 3.1).

The functions estimate G = sum_a Q^pi(x_t, a) grad pi(a|x_t) from an action a_t sampled from mu and
its return R_t. They return one loss for each step, float32 [T, B], whose gradient with respect to
the probabilities pi is minus the estimate. No other argument receives a gradient. The caller
weights and sums these losses.

Steps where `mask`, bool [T, B], is false contribute neither loss nor gradient. Other arguments may
have any values there.
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
    """Returns the beta-LOO loss of each step (equation 10).

        G = beta_t (R_t - Q(x_t, a_t)) grad pi(a_t|x_t) + sum_a Q(x_t, a) grad pi(a|x_t)
        beta_t = min(clip, 1 / mu(a_t|x_t))

    A clip of 1 is leave-one-out (equation 9), as in the results of the paper. An infinite clip is
    1/mu-LOO (equation 11), which is unbiased for any Q.

    Args:
      pi: Probabilities of the target policy, float32 [T, B, A]; receive the gradient.
      q_values: Action values Q(x_t, a), float32 [T, B, A].
      returns: Returns R_t, e.g. of Retrace, float32 [T, B].
      actions: Actions sampled from mu, int32 [T, B].
      mu_taken: Probabilities mu(a_t|x_t), float32 [T, B].
      mask: Mask of the steps, bool [T, B].
      clip: Upper bound of beta, at least 1.
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
    """Returns the TISLR loss of each step, the baseline of beta-LOO from ACER (section 3.1).

        G = min(c, rho(a_t)) (R_t - V) grad log pi(a_t|x_t)
            + sum_a (rho(a) - c)_+ mu(a|x_t) (Q(x_t, a) - V) grad log pi(a|x_t)
        rho(a) = pi(a|x_t) / mu(a|x_t),    V = sum_a pi(a|x_t) Q(x_t, a)

    Args:
      pi: Probabilities of the target policy, float32 [T, B, A]; receive the gradient unless they
        are 0, as those of forbidden actions.
      q_values: Action values, see `beta_leave_one_out`.
      returns: Returns, see `beta_leave_one_out`.
      actions: Actions, see `beta_leave_one_out`.
      mu: Probabilities of the behaviour policy, float32 [T, B, A].
      mask: Mask of the steps, bool [T, B].
      clip: Truncation c. An infinite value gives importance sampling, which is unbiased.
    """
    q_values, returns, actions, mu = (
        masking.keep(mask, x) for x in (q_values, returns, actions, mu)
    )
    # Forbidden actions have a weight of 0, and 0 * log 0 would be NaN.
    log_pi = tf.math.log(tf.where(mask[..., None] & (pi > 0), pi, tf.ones_like(pi)))
    fixed_pi = tf.stop_gradient(masking.keep(mask, pi))
    value = tf.reduce_sum(fixed_pi * q_values, axis=-1)
    taken = tf.one_hot(actions, pi.shape[-1])
    pi_taken, mu_taken = (
        tf.gather(x, actions, axis=-1, batch_dims=2)
        for x in (fixed_pi, tf.where(mask[..., None], mu, 1.0))
    )
    rho = tf.minimum(clip, pi_taken / mu_taken)
    # Equals (rho(a) - c)_+ mu(a), without a division. No ratio exceeds an infinite clip.
    excess = tf.nn.relu(fixed_pi - clip * mu) if clip < float("inf") else tf.zeros_like(mu)
    weights = (rho * (returns - value))[..., None] * taken
    weights += excess * (q_values - value[..., None])
    return -tf.reduce_sum(tf.stop_gradient(weights) * log_pi, axis=-1)

"""Reference implementations of the ops by rlax, for float32 arrays [T, B]."""

import warnings

import jax
import numpy as np
import rlax

jax.config.update("jax_platforms", "cpu")


def _over_batch(function, *args):
    """Maps a function of one sequence over axis 1."""
    args = [np.asarray(x, np.float32) for x in args]
    outputs = jax.vmap(function, in_axes=1, out_axes=1)(*args)
    return jax.tree_util.tree_map(np.asarray, outputs)


def vtrace(rhos, discounts, rewards, values, rho_bar, lambda_):
    """Returns targets v_t and weighted advantages rho_t A_t, [T, B] each; rlax has c_bar = 1."""

    def one_sequence(v_tm1, v_t, r_t, discount_t, rho_tm1):
        return rlax.vtrace_td_error_and_advantage(
            v_tm1, v_t, r_t, discount_t, rho_tm1, lambda_, rho_bar, rho_bar
        )

    output = _over_batch(one_sequence, values[:-1], values[1:], rewards, discounts, rhos)
    return output.errors + values[:-1], output.pg_advantage


def importance_sampled_values(rhos, discounts, rewards, values):
    """Returns V-trace targets without clips: importance sampling (LASER, equation 1)."""

    def one_sequence(v_tm1, v_t, r_t, discount_t, rho_tm1):
        errors = rlax.leaky_vtrace(
            v_tm1, v_t, r_t, discount_t, rho_tm1, alpha_=0.0, clip_rho_threshold=np.inf
        )
        return v_tm1 + errors

    return _over_batch(one_sequence, values[:-1], values[1:], rewards, discounts, rhos)


def lambda_returns(discounts, rewards, values, lambda_):
    """Returns lambda-returns [T, B]."""
    return _over_batch(
        lambda r_t, discount_t, v_t: rlax.lambda_returns(r_t, discount_t, v_t, lambda_),
        rewards,
        discounts,
        values[1:],
    )


def _without_deprecation_warnings():
    """Suppresses the warning that distributions of rlax will move to distrax."""
    return warnings.catch_warnings(action="ignore", category=PendingDeprecationWarning)


def _sum_and_gradient(mean_loss, argument):
    """Returns the sum and its gradient for a loss that rlax averages over time."""
    T, B = argument.shape[:2]
    flat = argument.reshape([T * B, *argument.shape[2:]])
    with _without_deprecation_warnings():
        loss, gradient = jax.value_and_grad(lambda x: T * B * mean_loss(x))(flat)
    return float(loss), np.asarray(gradient).reshape(argument.shape)


def policy_gradient_loss(logits, actions, weighted_advantages, mask):
    weights = mask.astype(np.float32).ravel()
    advantages = weighted_advantages.ravel()
    return _sum_and_gradient(
        lambda x: rlax.policy_gradient_loss(x, actions.ravel(), advantages, weights), logits
    )


def entropy_loss(logits, mask):
    weights = mask.astype(np.float32).ravel()
    return _sum_and_gradient(lambda x: rlax.entropy_loss(x, weights), logits)


def baseline_loss(values, targets, mask):
    weights = mask.astype(np.float32).ravel()
    targets = targets.ravel()
    return _sum_and_gradient(lambda x: (weights * rlax.l2_loss(x, targets)).mean(), values)


def kl_divergence(logits_p, logits_q):
    with _without_deprecation_warnings():
        return np.asarray(rlax.softmax().kl(logits_p, logits_q))


def pixel_rewards(scaled_observations, cell):
    """Returns rewards [T, B, H', W']; H and W must be multiples of `cell`."""
    return _over_batch(lambda x: rlax.pixel_control_rewards(x, cell), scaled_observations)


def pixel_control_errors(scaled_observations, actions, q, discounts, cell):
    """Returns half the squared errors [T, B, H', W'], with discounts [T, B]."""

    def one_sequence(observations, actions, q, discounts):
        actions = actions.astype(np.int32)
        return rlax.pixel_control_loss(observations, actions, q, discounts, cell)

    return _over_batch(one_sequence, scaled_observations, actions, q, discounts)


def popart(mean, variance, kernel, bias, targets, tasks, step):
    """Returns mean, scale, kernel and bias after one update for each target, as rlax counts."""
    scale = np.sqrt(variance)
    old = rlax.PopArtState(*map(np.float32, (mean, scale, variance + mean**2)))
    new = rlax.art(
        old, targets.ravel(), np.broadcast_to(tasks, targets.shape).ravel(), step, 1e-4, 1e6
    )
    layer = rlax.pop({"w": kernel, "b": bias}, old, new)
    return tuple(map(np.asarray, (new.shift, new.scale, layer["w"], layer["b"])))


def rescale(x):
    """Returns h(x) with epsilon 1e-3, as in R2D2."""
    return np.asarray(rlax.SIGNED_HYPERBOLIC_PAIR.apply(x))


def unrescale(y):
    """Returns h^-1(y) with epsilon 1e-3, as in R2D2."""
    return np.asarray(rlax.SIGNED_HYPERBOLIC_PAIR.apply_inv(y))


def n_step_returns(rewards, discounts, bootstrap_values, is_transition, n):
    """Returns n-step returns [T, B], which are only valid where `is_transition` is true.

    rlax has no time limits. A lambda of 0 makes it bootstrap at the last step of an episode.
    """
    lambdas = np.concatenate([is_transition[1:], np.ones_like(is_transition[:1])])

    def one_sequence(r_t, discount_t, v_t, lambda_t):
        return rlax.n_step_bootstrapped_returns(r_t, discount_t, v_t, n, lambda_t)

    return _over_batch(one_sequence, rewards, discounts, bootstrap_values[1:], lambdas)


def double_q_targets(q_online, q_target, rewards, discounts, n, rescaled):
    """Returns targets [T, B] as TD errors of zero values, with epsilon 1e-3 if rescaled."""
    pair = rlax.SIGNED_HYPERBOLIC_PAIR if rescaled else rlax.IDENTITY_PAIR

    def one_sequence(q_online, q_target, r_t, discount_t):
        zeros, actions = np.zeros(q_target.shape), np.zeros(len(q_target), np.int32)
        return rlax.transformed_n_step_q_learning(
            zeros, actions, q_target, q_online.argmax(-1), r_t, discount_t, n, tx_pair=pair
        )

    return _over_batch(one_sequence, q_online[1:], q_target[1:], rewards, discounts)

"""rlax (DeepMind's RL losses in JAX) as a second opinion on the ops, over float32 [T, B] arrays."""

import warnings

import jax
import numpy as np
import rlax

jax.config.update("jax_platforms", "cpu")


def _over_batch(function, *args):
    """Maps rlax's functions, which see one sequence, over axis 1."""
    args = [np.asarray(x, np.float32) for x in args]
    outputs = jax.vmap(function, in_axes=1, out_axes=1)(*args)
    return jax.tree_util.tree_map(np.asarray, outputs)


def vtrace(rhos, discounts, rewards, values, rho_bar, lambda_):
    """v_t [T, B] and the policy gradient's rho_t * advantage_t [T, B]; c_bar is 1 in rlax."""

    def one_sequence(v_tm1, v_t, r_t, discount_t, rho_tm1):
        return rlax.vtrace_td_error_and_advantage(
            v_tm1, v_t, r_t, discount_t, rho_tm1, lambda_, rho_bar, rho_bar
        )

    output = _over_batch(one_sequence, values[:-1], values[1:], rewards, discounts, rhos)
    return output.errors + values[:-1], output.pg_advantage


def importance_sampled_values(rhos, discounts, rewards, values):
    """V-trace without clips, i.e. multi-step importance sampling (LASER, equation 1)."""

    def one_sequence(v_tm1, v_t, r_t, discount_t, rho_tm1):
        errors = rlax.leaky_vtrace(
            v_tm1, v_t, r_t, discount_t, rho_tm1, alpha_=0.0, clip_rho_threshold=np.inf
        )
        return v_tm1 + errors

    return _over_batch(one_sequence, values[:-1], values[1:], rewards, discounts, rhos)


def lambda_returns(discounts, rewards, values, lambda_):
    return _over_batch(
        lambda r_t, discount_t, v_t: rlax.lambda_returns(r_t, discount_t, v_t, lambda_),
        rewards,
        discounts,
        values[1:],
    )


def _without_deprecation_warnings():
    """rlax's distributions are to move to distrax."""
    return warnings.catch_warnings(action="ignore", category=PendingDeprecationWarning)


def _sum_and_gradient(mean_loss, argument):
    """rlax averages its losses over time; the ops sum: [T, B, ...] -> sum, its gradient."""
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
    """Float [T + 1, B, H, W, C] with H and W multiples of `cell` -> [T, B, H', W']."""
    return _over_batch(lambda x: rlax.pixel_control_rewards(x, cell), scaled_observations)


def pixel_control_errors(scaled_observations, actions, q, discounts, cell):
    """Half the squared errors [T, B, H', W'] of rlax's loss, with a discount a step [T, B]."""

    def one_sequence(observations, actions, q, discounts):
        actions = actions.astype(np.int32)
        return rlax.pixel_control_loss(observations, actions, q, discounts, cell)

    return _over_batch(one_sequence, scaled_observations, actions, q, discounts)


def popart(mean, variance, kernel, bias, targets, tasks, step):
    """One update a target, all from the same statistics; rlax counts targets, not batches."""
    scale = np.sqrt(variance)
    old = rlax.PopArtState(*map(np.float32, (mean, scale, variance + mean**2)))
    new = rlax.art(
        old, targets.ravel(), np.broadcast_to(tasks, targets.shape).ravel(), step, 1e-4, 1e6
    )
    layer = rlax.pop({"w": kernel, "b": bias}, old, new)
    return tuple(map(np.asarray, (new.shift, new.scale, layer["w"], layer["b"])))


def rescale(x):
    """h with R2D2's epsilon, 1e-3."""
    return np.asarray(rlax.SIGNED_HYPERBOLIC_PAIR.apply(x))


def unrescale(y):
    """h^-1 with R2D2's epsilon, 1e-3."""
    return np.asarray(rlax.SIGNED_HYPERBOLIC_PAIR.apply_inv(y))


def n_step_returns(rewards, discounts, bootstrap_values, is_transition, n):
    """What holds of [T, B] where `is_transition` does; elsewhere rlax reads into the next episode.

    rlax knows no time limit; its lambda of 0 at an episode's last state bootstraps from there.
    """
    lambdas = np.concatenate([is_transition[1:], np.ones_like(is_transition[:1])])

    def one_sequence(r_t, discount_t, v_t, lambda_t):
        return rlax.n_step_bootstrapped_returns(r_t, discount_t, v_t, n, lambda_t)

    return _over_batch(one_sequence, rewards, discounts, bootstrap_values[1:], lambdas)


def double_q_targets(q_online, q_target, rewards, discounts, n, rescaled):
    """R2D2's targets [T, B], with epsilon 1e-3 or not rescaled: rlax's errors of values of 0."""
    pair = rlax.SIGNED_HYPERBOLIC_PAIR if rescaled else rlax.IDENTITY_PAIR

    def one_sequence(q_online, q_target, r_t, discount_t):
        zeros, actions = np.zeros(q_target.shape), np.zeros(len(q_target), np.int32)
        return rlax.transformed_n_step_q_learning(
            zeros, actions, q_target, q_online.argmax(-1), r_t, discount_t, n, tx_pair=pair
        )

    return _over_batch(one_sequence, q_online[1:], q_target[1:], rewards, discounts)

"""Tests ops against rlax, an implementation that is independent of this project."""

import jax
import numpy as np
import rlax
from absl.testing import absltest, parameterized

from laser_tf.ops import n_step, pixel_control, popart, value_rescaling, vtrace
from testing.ops import cases
from testing.ops.cases import GAMMA, B, T

jax.config.update("jax_platforms", "cpu")


def _over_batch(function, *args):
    """Maps a function of one sequence over axis 1."""
    args = [np.asarray(x, np.float32) for x in args]
    outputs = jax.vmap(function, in_axes=1, out_axes=1)(*args)
    return jax.tree_util.tree_map(np.asarray, outputs)


class RlaxTest(parameterized.TestCase):
    @parameterized.parameters((0.6, 0.8), (2.5, 1.0))
    def test_vtrace_matches_rlax(self, rho_bar, lambda_):
        inputs = cases.vtrace_inputs()
        output = vtrace.vtrace(**inputs, rho_bar=rho_bar, lambda_=lambda_)
        V, rewards, discounts = (inputs[name] for name in ("values", "rewards", "discounts"))
        # rlax has no trust region, but ratios of 0 have the same effect (equation 8).
        ratios = np.where(inputs["trusted"], np.exp(inputs["log_rhos"]), 0.0)
        expected = _over_batch(
            lambda *args: rlax.vtrace_td_error_and_advantage(*args, lambda_, rho_bar, rho_bar),
            *(V[:-1], V[1:], rewards, discounts, ratios),
        )
        np.testing.assert_allclose(output.values, expected.errors + V[:-1], rtol=1e-5, atol=1e-5)
        # The policy gradient of rlax bootstraps from lambda v_{t+1} + (1 - lambda) V(x_{t+1}), and
        # that of IMPALA (section 4.2) from v_{t+1}. They are equal for lambda = 1.
        one_step = rewards + discounts * V[1:] - V[:-1]
        ours = output.rhos * (lambda_ * output.advantages + (1 - lambda_) * one_step)
        np.testing.assert_allclose(ours, expected.pg_advantage, rtol=1e-5, atol=1e-5)

    @parameterized.parameters((1, False), (5, True), (3 * T, True))
    def test_double_q_targets_match_rlax(self, n, rescaled):
        # rlax has no time limits: without them all steps are transitions.
        inputs = cases.double_q_inputs()
        inputs["is_transition"][:] = True
        actual = n_step.double_q_targets(
            **inputs, n=n, rescaling_epsilon=1e-3 if rescaled else None
        )
        pair = rlax.SIGNED_HYPERBOLIC_PAIR if rescaled else rlax.IDENTITY_PAIR

        def one_sequence(q_online, q_target, rewards, discounts):
            # The TD errors of zero values are the targets.
            zeros, actions = np.zeros(q_target.shape), np.zeros(len(q_target), np.int32)
            best = q_online.argmax(-1)
            return rlax.transformed_n_step_q_learning(
                zeros, actions, q_target, best, rewards, discounts, n, tx_pair=pair
            )

        q_values = (inputs[name][1:] for name in ("q_online", "q_target"))
        expected = _over_batch(one_sequence, *q_values, inputs["rewards"], inputs["discounts"])
        np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)

    def test_value_rescaling_matches_rlax_within_its_precision(self):
        # For small values, rlax subtracts 500 from a number close to 500.
        values = np.float32([-1e3, -2.0, -0.1, 0.0, 0.5, 30.0, 1.5e3])
        pair = rlax.SIGNED_HYPERBOLIC_PAIR
        rescaled = value_rescaling.rescale(values, 1e-3)
        np.testing.assert_allclose(rescaled, pair.apply(values), rtol=1e-6, atol=1e-6)
        original = value_rescaling.unrescale(values, 1e-3)
        np.testing.assert_allclose(original, pair.apply_inv(values), rtol=1e-3, atol=1e-3)

    def test_pixel_control_matches_rlax(self):
        inputs, cell = cases.pixel_control_inputs(), 2
        rng = np.random.default_rng(0)
        shape = [T + 1, B, *(cell * size for size in cases.GRID), 3]
        observations = rng.integers(0, 256, shape, dtype=np.uint8)
        rewards = pixel_control.pixel_rewards(observations, cell)
        # rlax ends returns by discounts of 0.
        discounts = np.full([T, B], GAMMA, np.float32)
        discounts[:-1][~inputs["is_transition"][1:]] = 0.0
        errors = _over_batch(
            lambda x, a, q, discount: rlax.pixel_control_loss(
                x, a.astype(np.int32), q, discount, cell
            ),
            *(observations / 255, inputs["actions"], inputs["q"], discounts),
        )
        loss = pixel_control.pixel_control_loss(**inputs | {"rewards": rewards.numpy()})
        expected = errors[inputs["is_transition"] & inputs["mask"]].sum()
        np.testing.assert_allclose(loss, expected, rtol=1e-4)

    def test_popart_matches_rlax_with_a_step_for_each_target(self):
        rng, tasks = np.random.default_rng(3), np.array([0, 1, 2, 3], np.int32)  # T targets each
        mean, variance, bias = np.float32([rng.normal(size=4), [0.01, 1, 900, 1e6], [0, 1, 2, 3]])
        kernel = rng.normal(size=[5, 4]).astype(np.float32)
        targets = rng.normal(20, 50, [T, 4]).astype(np.float32)
        old = popart.Statistics(mean, variance)
        new = popart.update(old, targets, np.ones([T, 4], bool), tasks, 0.07)
        actual = (new.mean, popart.sigma(new), *popart.preserve_outputs(old, new, kernel, bias))
        before = rlax.PopArtState(mean, np.sqrt(variance), variance + mean**2)
        all_tasks = np.broadcast_to(tasks, targets.shape).ravel()
        after = rlax.art(before, targets.ravel(), all_tasks, 0.07 / T, 1e-4, 1e6)
        layer = rlax.pop({"w": kernel, "b": bias}, before, after)
        expected = (after.shift, after.scale, layer["w"], layer["b"])
        for ours, reference in zip(actual, expected, strict=True):
            np.testing.assert_allclose(ours, reference, rtol=1e-3, atol=1e-5)


if __name__ == "__main__":
    absltest.main()

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import vtrace
from testing import numpy_reference
from testing.ops import rlax_oracle

T, B, A = 9, 6, 4

# rho_bar, c_bar, lambda_
CLIPS = (
    ("as_in_the_papers", 1.0, 1.0, 1.0),
    ("rho_bar_above_c_bar", 2.5, 1.5, 1.0),
    ("rho_bar_below_c_bar", 0.6, 1.7, 1.0),
    ("with_lambda", 1.4, 0.8, 0.9),
    ("no_clip", np.inf, np.inf, 1.0),
)


def _inputs(seed=0):
    """Returns inputs with ratios from 0.1 to 8, below and above all clips, and zero discounts."""
    rng = np.random.default_rng(seed)
    return {
        "log_rhos": rng.uniform(np.log(0.1), np.log(8.0), [T, B]).astype(np.float32),
        "discounts": (0.9 * (rng.uniform(size=[T, B]) > 0.1)).astype(np.float32),
        "rewards": rng.normal(size=[T, B]).astype(np.float32),
        "values": rng.normal(size=[T + 1, B]).astype(np.float32),
        "trusted": np.ones([T, B], bool),
    }


def _some_untrusted(seed=1):
    """Returns a mask with 25% untrusted steps, an untrusted column and a trusted column."""
    trusted = np.random.default_rng(seed).uniform(size=[T, B]) > 0.25
    trusted[0, 0] = trusted[-1, 1] = False
    trusted[:, -2], trusted[:, -1] = False, True
    return trusted


class VtraceTest(parameterized.TestCase):
    @parameterized.named_parameters(*CLIPS)
    def test_targets_match_the_double_sum_of_equation_8(self, rho_bar, c_bar, lambda_):
        inputs = _inputs() | {"trusted": _some_untrusted()}
        clips = {"rho_bar": rho_bar, "c_bar": c_bar, "lambda_": lambda_}
        output = vtrace.vtrace(**inputs, **clips)
        values, advantages, rhos = numpy_reference.vtrace(**inputs, **clips)
        trusted = inputs["trusted"]
        np.testing.assert_allclose(output.values, values, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            output.advantages.numpy()[trusted], advantages[trusted], rtol=1e-5, atol=1e-5
        )
        np.testing.assert_allclose(output.rhos.numpy()[trusted], rhos[trusted], rtol=1e-5)

    @parameterized.parameters(np.nan, np.inf, -np.inf)
    def test_untrusted_values_are_not_read(self, poison):
        inputs = _inputs() | {"trusted": _some_untrusted()}
        clean = vtrace.vtrace(**inputs)
        for name in ("log_rhos", "rewards", "discounts"):
            inputs[name] = np.where(inputs["trusted"], inputs[name], np.float32(poison))
        for expected, actual in zip(clean, vtrace.vtrace(**inputs), strict=True):
            self.assertTrue(np.isfinite(actual).all())
            np.testing.assert_array_equal(actual, expected)

    def test_untrusted_step_keeps_its_value_and_has_rho_0(self):
        inputs = _inputs() | {"trusted": _some_untrusted()}
        output = vtrace.vtrace(**inputs)
        untrusted = ~inputs["trusted"]
        np.testing.assert_array_equal(
            output.values.numpy()[untrusted], inputs["values"][:-1][untrusted]
        )
        np.testing.assert_array_equal(output.rhos.numpy()[untrusted], 0.0)

    def test_untrusted_step_hides_later_steps(self):
        # A mask outside of the recursion would not have this property.
        inputs = _inputs()
        inputs["trusted"][4] = False
        before = vtrace.vtrace(**inputs)
        for name in ("rewards", "discounts", "log_rhos"):
            inputs[name][5:] = 0.25
        inputs["values"][5:] += 1.0
        after = vtrace.vtrace(**inputs)
        np.testing.assert_array_equal(before.values[:5], after.values[:5])
        np.testing.assert_array_equal(before.advantages[:4], after.advantages[:4])
        self.assertGreater(np.abs(before.values[5:] - after.values[5:]).min(), 0.0)

    def test_zero_discount_hides_later_steps(self):
        inputs = _inputs()
        inputs["discounts"][4] = 0.0  # x_5 ends an episode, and its reward is the last
        before = vtrace.vtrace(**inputs)
        for name in ("rewards", "discounts", "log_rhos"):
            inputs[name][5:] = 0.25
        inputs["values"][5:] += 1.0
        after = vtrace.vtrace(**inputs)
        np.testing.assert_array_equal(before.values[:5], after.values[:5])
        np.testing.assert_array_equal(before.advantages[:5], after.advantages[:5])

    @parameterized.named_parameters(("terminated", 0.0), ("truncated", 1.0))
    def test_only_time_limits_bootstrap_at_the_end(self, discount):
        # On policy. x_2 ends the episode and x_3 starts the next, so step 2 is not a transition.
        gamma, v, r = 0.9, [1.0, 2.0, 4.0, 8.0, 16.0], [3.0, 5.0, np.nan, 7.0]
        output = vtrace.vtrace(
            log_rhos=tf.constant([[0.0], [0.0], [np.nan], [0.0]]),
            discounts=tf.constant([[gamma], [gamma * discount], [gamma], [gamma]]),
            rewards=tf.constant(r)[:, None],
            values=tf.constant(v)[:, None],
            trusted=tf.constant([[True], [True], [False], [True]]),
        )
        # A time limit bootstraps from V(x_2), not from the value of the next episode.
        last = r[1] + gamma * discount * v[2]
        expected = [r[0] + gamma * last, last, v[2], r[3] + gamma * v[4]]
        np.testing.assert_allclose(output.values[:, 0], expected, rtol=1e-6)
        np.testing.assert_allclose(output.advantages[1, 0], last - v[1], rtol=1e-6)

    @parameterized.parameters(0.0, 0.7, 1.0)
    def test_on_policy_targets_are_lambda_returns(self, lambda_):
        # IMPALA, remark 2: with pi = mu, targets are those of TD(lambda).
        inputs = _inputs() | {"log_rhos": np.zeros([T, B], np.float32)}
        output = vtrace.vtrace(**inputs, lambda_=lambda_)
        expected = rlax_oracle.lambda_returns(
            inputs["discounts"], inputs["rewards"], inputs["values"], lambda_
        )
        np.testing.assert_allclose(output.values, expected, rtol=1e-5, atol=1e-5)

    def test_infinite_clips_are_importance_sampling(self):
        # LASER, equation 7: with rho_bar = c_bar = inf, weights are products of pi / mu.
        inputs = _inputs()
        output = vtrace.vtrace(**inputs, rho_bar=np.inf, c_bar=np.inf)
        expected = rlax_oracle.importance_sampled_values(
            np.exp(inputs["log_rhos"]), inputs["discounts"], inputs["rewards"], inputs["values"]
        )
        np.testing.assert_allclose(output.values, expected, rtol=1e-4, atol=1e-4)

    @parameterized.product(rho_bar=(0.6, 1.0, 2.5), lambda_=(1.0, 0.8), trust_region=(False, True))
    def test_targets_and_advantages_match_rlax(self, rho_bar, lambda_, trust_region):
        inputs = _inputs()
        if trust_region:
            inputs["trusted"] = _some_untrusted()
        output = vtrace.vtrace(**inputs, rho_bar=rho_bar, lambda_=lambda_)
        # rlax has no trust region, but ratios of 0 have the same effect (equation 8).
        ratios = np.where(inputs["trusted"], np.exp(inputs["log_rhos"]), 0.0)
        values, weighted_advantages = rlax_oracle.vtrace(
            ratios, inputs["discounts"], inputs["rewards"], inputs["values"], rho_bar, lambda_
        )
        np.testing.assert_allclose(output.values, values, rtol=1e-5, atol=1e-5)
        # The policy gradient of rlax bootstraps from lambda v_{t+1} + (1 - lambda) V(x_{t+1}), and
        # that of IMPALA (section 4.2) from v_{t+1}. They are equal for lambda = 1.
        V = inputs["values"]
        one_step = inputs["rewards"] + inputs["discounts"] * V[1:] - V[:-1]
        ours = output.rhos * (lambda_ * output.advantages + (1 - lambda_) * one_step)
        np.testing.assert_allclose(ours, weighted_advantages, rtol=1e-5, atol=1e-5)

    def test_outputs_have_no_gradient(self):
        inputs = {name: tf.constant(x) for name, x in _inputs().items()}
        watched = [inputs[name] for name in ("log_rhos", "discounts", "rewards", "values")]
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(watched)
            output = vtrace.vtrace(**inputs)
        for tensor in output:
            self.assertEqual(tape.gradient(tensor, watched), [None] * 4)

    def test_extreme_ratios_give_finite_outputs(self):
        inputs = _inputs()
        inputs["log_rhos"][::2], inputs["log_rhos"][1::2] = 1e4, -1e4
        output = vtrace.vtrace(**inputs)
        for tensor in output:
            self.assertTrue(np.isfinite(tensor).all())
        np.testing.assert_array_equal(output.rhos[::2], 1.0)
        np.testing.assert_array_equal(output.rhos[1::2], 0.0)

    @parameterized.named_parameters(*CLIPS)
    def test_xla_agrees_with_eager(self, rho_bar, c_bar, lambda_):
        inputs = _inputs() | {"trusted": _some_untrusted()}
        inputs["rewards"] = np.where(inputs["trusted"], inputs["rewards"], np.nan)
        clips = {"rho_bar": rho_bar, "c_bar": c_bar, "lambda_": lambda_}
        compiled = tf.function(lambda kwargs: vtrace.vtrace(**kwargs, **clips), jit_compile=True)
        for actual, expected in zip(
            compiled(inputs), vtrace.vtrace(**inputs, **clips), strict=True
        ):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    absltest.main()

"""Tests of squashed and clipped Gaussians."""

import itertools

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf import errors
from laser_tf.agents import laser_config
from laser_tf.distributions import factory, gaussian
from testing import messages, numpy_reference

D = 3
LOW, HIGH = np.array([-1.0, 0.0, -50.0], np.float32), np.array([1.0, 0.1, 10.0], np.float32)
BOUNDS = specs.BoundedArray([D], np.float32, LOW, HIGH)


def _family(policy: str = "squashed", initial_std: float = 0.5) -> gaussian.Gaussian:
    return factory.make(BOUNDS, policy, initial_std)


def _outputs(seed: int, *shape: int) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).normal(size=[*shape, 2 * D]), tf.float32)


class DensityTest(parameterized.TestCase):
    @parameterized.parameters("squashed", "clipped")
    def test_methods_match_the_formulas(self, policy):
        family = _family(policy)
        self.assertEqual(family.output_size, 2 * D)
        p, q = (family.parameters(_outputs(seed, 4, 5)) for seed in (0, 1))
        latent = tf.constant(np.random.default_rng(2).normal(size=[4, 5, D]), tf.float32)
        action = tf.fill([4, 5, D], np.nan)  # not read
        log_p, log_q = (numpy_reference.gaussian_log_density(latent, *x) for x in (p, q))
        entropy = numpy_reference.gaussian_entropy(*p, policy == "squashed")
        kl = numpy_reference.gaussian_kl_divergence(p, q)
        for actual, expected, tolerance in (
            (family.log_prob(p, action, latent), log_p, 1e-4),
            (family.log_importance_ratio(p, q, action, latent), log_p - log_q, 1e-4),
            (family.entropy(p), entropy, 2e-3),
            (family.kl_divergence(p, q), kl, 1e-4),
        ):
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=tolerance)

    @parameterized.parameters(
        (0.0, 0.1, 0, 1), (0.0, 5.0, 0, -1), (2.0, 0.1, -1, 1), (-2, 5, 1, -1)
    )
    def test_entropy_bonus_makes_squashed_policies_uniform(self, mean, std, *signs):
        # The mean moves to the centre and the deviation to a nearly uniform tanh(latent).
        family = _family("squashed")
        parameters = gaussian.Parameters(tf.fill([1, D], float(mean)), tf.fill([1, D], float(std)))
        with tf.GradientTape() as tape:
            tape.watch(parameters)
            entropy = family.entropy(parameters)
        for gradient, sign in zip(tape.gradient(entropy, parameters), signs, strict=True):
            np.testing.assert_array_equal(np.sign(np.round(gradient, 5)), np.full([1, D], sign))
        self.assertLess(entropy, D * np.log(2))

    @parameterized.parameters(1e3, -1e3)
    def test_entropy_is_precise_at_the_bounds(self, output):
        parameters = _family().parameters(tf.fill([1, 2 * D], output))
        expected = numpy_reference.gaussian_entropy(*parameters, True)
        np.testing.assert_allclose(_family().entropy(parameters), expected, atol=D * 3.5e-3)


class ParametersTest(parameterized.TestCase):
    @parameterized.parameters(0.31, 0.5, 1.9)
    def test_zero_outputs_give_the_initial_std(self, initial_std):
        mean, std = _family(initial_std=initial_std).parameters(tf.zeros([2, 2 * D]))
        np.testing.assert_array_equal(mean, np.zeros([2, D]))
        np.testing.assert_allclose(std, np.full([2, D], initial_std), rtol=1e-4)

    @parameterized.parameters((-1e4, -3.0, 0.3), (1e4, 3.0, 2.0))
    def test_mean_and_std_are_bounded(self, output, *bounds):
        # A narrow policy would leave the trust region with each update.
        parameters = _family().parameters(tf.fill([2, 2 * D], output))
        for actual, bound in zip(parameters, bounds, strict=True):
            np.testing.assert_allclose(actual, np.full([2, D], bound), rtol=1e-4)

    @parameterized.parameters(0.3, 2.0)
    def test_initial_std_at_a_bound_is_rejected(self, initial_std):
        with messages.raises(errors.ConfigError, "initial_std", str(initial_std)):
            laser_config.LaserConfig(initial_std=initial_std)


class ActionTest(parameterized.TestCase):
    @parameterized.parameters("squashed", "clipped")
    def test_samples_have_the_moments_and_scale_to_the_bounds(self, policy):
        family = _family(policy)
        parameters = family.parameters(tf.repeat(_outputs(0, 1), 100_000, axis=0))
        sample = family.sample(parameters, tf.constant([1, 2]))
        latent = sample.latent.numpy()
        mean, std = (array[0].numpy() for array in parameters)
        np.testing.assert_allclose(latent.mean(0), mean, atol=5 * std.max() / 300)
        np.testing.assert_allclose(latent.std(0), std, rtol=0.02)
        np.testing.assert_allclose(np.corrcoef(latent.T), np.eye(D), atol=0.02)
        unit = np.tanh(latent) if policy == "squashed" else np.clip(latent, -1, 1)
        expected = LOW + (unit + 1) / 2 * (HIGH - LOW)
        np.testing.assert_allclose(sample.action, expected, rtol=1e-4, atol=1e-4)
        unit = np.tanh(mean) if policy == "squashed" else np.clip(mean, -1, 1)
        np.testing.assert_allclose(
            family.mode(parameters)[0], LOW + (unit + 1) / 2 * (HIGH - LOW), rtol=1e-4, atol=1e-4
        )

    @parameterized.parameters("squashed", "clipped")
    def test_actions_are_within_any_bounds(self, policy):
        # The middle plus half the range often differs from the bound by a rounding error.
        generator = np.random.default_rng(0)
        low, high = np.sort(generator.normal(size=[2, 500]), axis=0).astype(np.float32)
        spec = specs.BoundedArray([500], np.float32, low, high)
        family = factory.make(spec, policy, 0.5)
        for sign, spread in itertools.product((-1.0, 1.0), (-1e3, 5.0)):
            outputs = tf.concat([tf.fill([1, 500], 1e3 * sign), tf.fill([1, 500], spread)], axis=-1)
            parameters = family.parameters(outputs)
            spec.validate(family.mode(parameters)[0].numpy())
            spec.validate(family.sample(parameters, tf.constant([1, 2])).action[0].numpy())

    def test_same_seed_gives_the_same_sample(self):
        family = _family()
        parameters = family.parameters(_outputs(0, 7))
        # Generators make int64 seeds, which some functions of TensorFlow Probability reject.
        one, same, other = (
            family.sample(parameters, tf.constant(seed, tf.int64)).latent
            for seed in ([1, 2], [1, 2], [1, 3])
        )
        np.testing.assert_array_equal(one, same)
        self.assertFalse(np.array_equal(one, other))


if __name__ == "__main__":
    absltest.main()

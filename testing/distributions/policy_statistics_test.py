"""Tests of gradients with respect to policy statistics against finite differences."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf.distributions import factory, gaussian
from testing import numpy_reference

A, D, STD, STEP = 4, 3, 0.3, 1e-6
DISCRETE = specs.DiscreteArray(A)
BOUNDS = specs.BoundedArray([D], np.float32, [-1, 0, -50], [1, 0.1, 10])


def _differences(function, phi):
    """Returns the gradient of a function of phi [S] by central differences."""
    result = np.zeros_like(phi)
    for i in range(len(phi)):
        up, down = phi.copy(), phi.copy()
        up[i] += STEP
        down[i] -= STEP
        result[i] = (function(up) - function(down)) / (2 * STEP)
    return result


class DiscreteTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(0)
        self._logits = rng.normal(0, 2, [2, A])
        self._average = rng.normal(0, 2, [2, A])
        self._weights = rng.normal(size=[2, A])

    @parameterized.parameters("probabilities", "logits")
    def test_gradients_match_finite_differences(self, name):
        _, statistics = factory.make_with_statistics(DISCRETE, name, STD)
        logits, action = tf.constant(self._logits), tf.constant([1, 3])
        phi = statistics.compute(logits).numpy()
        to_pi = numpy_reference.softmax if name == "logits" else lambda p: p
        for n in range(2):
            np.testing.assert_allclose(to_pi(phi[n]), numpy_reference.softmax(self._logits[n]))
        score = statistics.score(logits, action)
        expected_score = statistics.expected_score(logits, tf.constant(self._weights))
        k = statistics.divergence_gradient(tf.constant(self._average), logits)
        entropy = statistics.entropy_gradient(logits)
        for n in range(2):
            chosen, mean, pi = (
                int(action[n]),
                numpy_reference.softmax(self._average[n]),
                to_pi(phi[n]),
            )

            def log_pi(p, a=chosen):
                return np.log(to_pi(p))[a]

            def divergence(p, mean=mean):
                return (mean * np.log(mean / to_pi(p))).sum()

            def pi_entropy(p):
                return -(to_pi(p) * np.log(to_pi(p))).sum()

            def weighted(p, pi=pi, n=n):
                return (pi * self._weights[n] * np.log(to_pi(p))).sum()

            for actual, function in (
                (score, log_pi),
                (expected_score, weighted),
                (k, divergence),
                (entropy, pi_entropy),
            ):
                np.testing.assert_allclose(
                    actual[n], _differences(function, phi[n]), rtol=1e-4, atol=1e-7
                )

    @parameterized.parameters("probabilities", "logits")
    def test_zero_probabilities_have_finite_gradients(self, name):
        _, statistics = factory.make_with_statistics(DISCRETE, name, STD)
        logits = tf.constant([[0.0, -500.0, 0.0, 0.0]])
        average = tf.constant([[-500.0, 0.0, 0.0, 0.0]])
        for gradient in (
            statistics.score(logits, tf.constant([1])),
            tf.square(statistics.divergence_gradient(average, logits)),
            statistics.entropy_gradient(logits),
        ):
            self.assertTrue(np.isfinite(gradient).all())


class MeansTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._family, self._statistics = factory.make_with_statistics(BOUNDS, "logits", STD)
        rng = np.random.default_rng(0)
        self._means, self._average, self._latent = rng.normal(size=[3, 2, D])

    def _parameters(self, means) -> gaussian.Parameters:
        return self._family.parameters(tf.constant(means, tf.float32))

    def test_deviation_is_fixed_and_actions_are_clipped(self):
        parameters = self._parameters(np.full([50_000, D], 0.9))
        np.testing.assert_allclose(parameters.std, np.full([50_000, D], STD), rtol=1e-6)
        sample = self._family.sample(parameters, tf.constant([1, 2]))
        np.testing.assert_allclose(np.std(sample.latent, axis=0), STD, rtol=0.02)
        self.assertTrue((sample.action <= BOUNDS.maximum).numpy().all())
        self.assertGreater(np.mean(sample.action[:, 0] == 1.0), 0.3)
        self.assertEqual(self._family.output_size, D)

    def test_gradients_match_finite_differences(self):
        parameters = self._parameters(self._means)
        np.testing.assert_allclose(self._statistics.compute(parameters), self._means, rtol=1e-6)
        score = self._statistics.score(
            parameters, tf.fill([2, D], np.nan), tf.constant(self._latent, tf.float32)
        )
        k = self._statistics.divergence_gradient(self._parameters(self._average), parameters)
        np.testing.assert_array_equal(self._statistics.entropy_gradient(parameters), 0.0)
        for n in range(2):
            latent, average = self._latent[n], self._average[n]
            np.testing.assert_allclose(
                score[n],
                _differences(
                    lambda m, u=latent: -0.5 * np.square((u - m) / STD).sum(), self._means[n]
                ),
                rtol=1e-4,
            )
            np.testing.assert_allclose(
                k[n],
                _differences(
                    lambda m, a=average: 0.5 * np.square((a - m) / STD).sum(), self._means[n]
                ),
                rtol=1e-4,
            )


if __name__ == "__main__":
    absltest.main()

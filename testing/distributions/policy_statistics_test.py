"""Gradients with respect to a policy's statistics, against finite differences in float64."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf.distributions import factory, gaussian

A, D, STD, STEP = 4, 3, 0.3, 1e-6
DISCRETE = specs.DiscreteArray(A)
BOUNDS = specs.BoundedArray([D], np.float32, [-1, 0, -50], [1, 0.1, 10])


def _differences(function, phi):
    """The gradient of a function of phi [S] by central differences."""
    result = np.zeros_like(phi)
    for i in range(len(phi)):
        up, down = phi.copy(), phi.copy()
        up[i] += STEP
        down[i] -= STEP
        result[i] = (function(up) - function(down)) / (2 * STEP)
    return result


def _softmax(logits):
    return np.exp(logits) / np.exp(logits).sum()


class DiscreteTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(0)
        self._logits = rng.normal(0, 2, [2, A])
        self._average = rng.normal(0, 2, [2, A])
        self._weights = rng.normal(size=[2, A])

    @parameterized.parameters("probabilities", "logits")
    def test_gradients_are_those_of_the_formulas(self, kind):
        _, statistics = factory.make_with_statistics(DISCRETE, kind, STD)
        logits, action = tf.constant(self._logits), tf.constant([1, 3])
        phi = statistics.of(logits).numpy()
        to_pi = _softmax if kind == "logits" else lambda p: p
        for row in range(2):
            np.testing.assert_allclose(to_pi(phi[row]), _softmax(self._logits[row]))
        score = statistics.score(logits, action)
        expected_score = statistics.expected_score(logits, tf.constant(self._weights))
        k = statistics.divergence_gradient(tf.constant(self._average), logits)
        entropy = statistics.entropy_gradient(logits)
        for row in range(2):
            chosen, mean, pi = int(action[row]), _softmax(self._average[row]), to_pi(phi[row])

            def log_pi(p, a=chosen):
                return np.log(to_pi(p))[a]

            def divergence(p, mean=mean):
                return (mean * np.log(mean / to_pi(p))).sum()

            def randomness(p):
                return -(to_pi(p) * np.log(to_pi(p))).sum()

            def weighted(p, pi=pi, row=row):
                return (pi * self._weights[row] * np.log(to_pi(p))).sum()

            for actual, function in (
                (score, log_pi),
                (expected_score, weighted),
                (k, divergence),
                (entropy, randomness),
            ):
                np.testing.assert_allclose(
                    actual[row], _differences(function, phi[row]), rtol=1e-4, atol=1e-7
                )

    @parameterized.parameters("probabilities", "logits")
    def test_they_stay_finite_where_an_action_has_no_probability(self, kind):
        _, statistics = factory.make_with_statistics(DISCRETE, kind, STD)
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

    def test_the_deviation_is_fixed_and_actions_are_clipped(self):
        parameters = self._parameters(np.full([50_000, D], 0.9))
        np.testing.assert_allclose(parameters.std, np.full([50_000, D], STD), rtol=1e-6)
        draw = self._family.sample(parameters, tf.constant([1, 2]))
        np.testing.assert_allclose(np.std(draw.latent, axis=0), STD, rtol=0.02)
        self.assertTrue((draw.action <= BOUNDS.maximum).numpy().all())
        self.assertGreater(np.mean(draw.action[:, 0] == 1.0), 0.3)
        self.assertEqual(self._family.output_size, D)

    def test_gradients_are_those_of_the_formulas(self):
        parameters = self._parameters(self._means)
        np.testing.assert_allclose(self._statistics.of(parameters), self._means, rtol=1e-6)
        score = self._statistics.score(
            parameters, tf.fill([2, D], np.nan), tf.constant(self._latent, tf.float32)
        )
        k = self._statistics.divergence_gradient(self._parameters(self._average), parameters)
        np.testing.assert_array_equal(self._statistics.entropy_gradient(parameters), 0.0)
        for row in range(2):
            latent, average = self._latent[row], self._average[row]
            np.testing.assert_allclose(
                score[row],
                _differences(
                    lambda m, u=latent: -0.5 * np.square((u - m) / STD).sum(), self._means[row]
                ),
                rtol=1e-4,
            )
            np.testing.assert_allclose(
                k[row],
                _differences(
                    lambda m, a=average: 0.5 * np.square((a - m) / STD).sum(), self._means[row]
                ),
                rtol=1e-4,
            )


if __name__ == "__main__":
    absltest.main()

"""Tests of truncated importance ratios with bias correction."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import importance_truncation


class TruncationTest(parameterized.TestCase):
    @parameterized.parameters(0.5, 1.0, 3.0)
    def test_sum_of_both_terms_is_unbiased(self, c):
        # Equation 7 with a random function f and ratios below and above c.
        rng = np.random.default_rng(0)
        pi, mu, f = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6)), rng.normal(size=6)
        log_rhos = tf.constant(np.log(pi / mu))
        truncated = importance_truncation.truncated_ratios(log_rhos, c).numpy()
        correction = importance_truncation.correction_weights(log_rhos, c).numpy()
        np.testing.assert_allclose((mu * truncated * f + pi * correction * f).sum(), (pi * f).sum())
        self.assertLess(truncated.min(), c)
        self.assertLessEqual(truncated.max(), c * (1 + 1e-9))
        self.assertBetween(correction.min(), 0, 1)
        np.testing.assert_array_equal(correction > 0, np.exp(log_rhos) > c)

    def test_zero_probabilities_give_finite_weights(self):
        log_rhos = tf.constant([-np.inf, -200.0, 200.0, np.inf], tf.float32)
        np.testing.assert_allclose(
            importance_truncation.truncated_ratios(log_rhos, 10.0), [0, 0, 10, 10], rtol=1e-6
        )
        np.testing.assert_allclose(
            importance_truncation.correction_weights(log_rhos, 10.0), [0, 0, 1, 1]
        )

    def test_weights_have_no_gradient(self):
        log_rhos = tf.constant([[0.5, 3.0]])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(log_rhos)
            outputs = [
                importance_truncation.truncated_ratios(log_rhos, 2.0),
                importance_truncation.correction_weights(log_rhos, 2.0),
                importance_truncation.truncated_products(log_rhos, log_rhos, log_rhos > 0, 2.0),
            ]
        for output in outputs:
            self.assertIsNone(tape.gradient(output, log_rhos))


class ProductsTest(absltest.TestCase):
    def test_products_end_with_the_episode_and_are_truncated_once(self):
        rhos = np.array([[0.5, 2.0], [4.0, 3.0], [np.nan, 0.1], [3.0, 0.5]])
        is_transition = tf.constant([[True, True], [True, True], [False, True], [True, True]])
        actual = importance_truncation.truncated_products(
            tf.constant(np.log(rhos)), tf.ones([4, 2]), is_transition, 3.5
        ).numpy()
        # The first episode ends before step 2. The product 0.5 * 4 is below c, but 4 is above.
        np.testing.assert_allclose(actual[:, 0][[0, 1, 3]], [2.0, 3.5, 3.0])
        np.testing.assert_allclose(actual[:, 1], [0.3, 0.15, 0.05, 0.5])

    def test_lost_life_ends_the_product(self):
        log_rhos = tf.math.log([[0.5], [2.0], [0.1], [0.2]])
        discounts = tf.constant([[1.0], [0.0], [0.9], [1.0]])
        actual = importance_truncation.truncated_products(
            log_rhos, discounts, tf.ones([4, 1], tf.bool), 1.5
        )
        np.testing.assert_allclose(actual[:, 0], [1.0, 1.5, 0.02, 0.2], rtol=1e-6)


if __name__ == "__main__":
    absltest.main()

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
        with tf.GradientTape() as tape:
            tape.watch(log_rhos)
            truncated = importance_truncation.truncated_ratios(log_rhos, c)
            correction = importance_truncation.correction_weights(log_rhos, c)
        self.assertIsNone(tape.gradient([truncated, correction], log_rhos))
        np.testing.assert_allclose((mu * truncated * f + pi * correction * f).numpy().sum(), pi @ f)
        np.testing.assert_allclose(truncated, np.minimum(c, pi / mu))
        np.testing.assert_array_equal(correction > 0, np.exp(log_rhos) > c)

    def test_zero_probabilities_give_finite_weights(self):
        log_rhos = tf.constant([-np.inf, -200.0, 200.0, np.inf], tf.float32)
        np.testing.assert_allclose(
            importance_truncation.truncated_ratios(log_rhos, 10.0), [0, 0, 10, 10], rtol=1e-6
        )
        np.testing.assert_allclose(
            importance_truncation.correction_weights(log_rhos, 10.0), [0, 0, 1, 1]
        )


if __name__ == "__main__":
    absltest.main()

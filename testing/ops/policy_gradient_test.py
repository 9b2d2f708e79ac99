import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import policy_gradient

T, B = 7, 5


class PolicyGradientTest(parameterized.TestCase):
    @parameterized.parameters("policy_gradient_loss", "entropy_loss")
    def test_masked_nan_has_neither_loss_nor_gradient(self, name):
        # `properties_test` has masked logits; here log-probabilities and entropies are NaN.
        rng = np.random.default_rng(0)
        mask = rng.uniform(size=[T, B]) > 0.3
        values, advantages = rng.normal(size=[2, T, B]).astype(np.float32)
        terms = tf.constant(np.where(mask, values, np.nan))
        weights = tf.constant(np.where(mask, advantages, np.nan))
        with tf.GradientTape() as tape:
            tape.watch(terms)
            if name == "entropy_loss":
                loss, expected = policy_gradient.entropy_loss(terms, mask), -mask.astype(np.float32)
            else:
                loss = policy_gradient.policy_gradient_loss(terms, weights, mask)
                expected = -np.where(mask, advantages, 0.0)
        np.testing.assert_allclose(loss, (expected * values).sum(), rtol=1e-5)
        np.testing.assert_array_equal(tape.gradient(loss, terms), expected)


if __name__ == "__main__":
    absltest.main()

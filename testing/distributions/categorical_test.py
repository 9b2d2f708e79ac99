import numpy as np
import tensorflow as tf
from absl.testing import absltest
from dm_env import specs

from laser_tf.distributions import factory
from testing import numpy_reference

N, A = 6, 4


def _logits(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=[2, N, A]).astype(np.float32)


class CategoricalTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self._family = factory.make(specs.DiscreteArray(A), "squashed", 0.5)

    def test_methods_match_naive_formulas(self):
        logits_p, logits_q = _logits(0), _logits(1)
        self.assertEqual(self._family.output_size, A)
        self.assertIs(self._family.parameters(logits_p), logits_p)
        actions = np.random.default_rng(2).integers(A, size=[2, N]).astype(np.int32)
        log_p, log_q = map(numpy_reference.log_softmax, (logits_p, logits_q))
        index = (*np.indices([2, N]), actions)
        for actual, expected in (
            (self._family.log_prob(logits_p, tf.constant(actions), ()), log_p[index]),
            (self._family.entropy(logits_p), -(np.exp(log_p) * log_p).sum(-1)),
            (
                self._family.kl_divergence(logits_p, logits_q),
                (np.exp(log_p) * (log_p - log_q)).sum(-1),
            ),
            (
                self._family.log_importance_ratio(logits_p, logits_q, tf.constant(actions), ()),
                (log_p - log_q)[index],
            ),
        ):
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)

    def test_nearly_deterministic_policies_are_finite(self):
        pi, mu = tf.constant([[1e4, 0.0, -1e4]]), tf.constant([[-1e4, 0.0, 1e4]])
        for action, expected in enumerate((2e4, 0.0, -2e4)):
            ratio = self._family.log_importance_ratio(pi, mu, tf.constant([action]), ())
            np.testing.assert_allclose(ratio, [expected])
        with tf.GradientTape() as tape:
            tape.watch(pi)
            entropy = self._family.entropy(pi)
        np.testing.assert_array_equal(entropy, [0.0])
        self.assertTrue(np.isfinite(tape.gradient(entropy, pi)).all())

    def test_samples_follow_probabilities_and_seed(self):
        logits = tf.repeat(_logits(0)[0, :1], 40_000, axis=0)
        sample = self._family.sample(logits, tf.constant([1, 2]))
        self.assertEqual((sample.action.dtype, sample.latent), (tf.int32, ()))
        shares = np.bincount(sample.action, minlength=A) / 40_000
        # The tolerance is five standard deviations.
        np.testing.assert_allclose(shares, tf.nn.softmax(logits[0]), atol=0.0125)
        again = self._family.sample(logits, tf.constant([1, 2])).action
        np.testing.assert_array_equal(sample.action, again)
        other = self._family.sample(logits, tf.constant([1, 3])).action
        self.assertFalse(np.array_equal(sample.action, other))

    def test_mode_is_the_first_largest_logit(self):
        mode = self._family.mode(tf.constant([[0.0, 3.0, 3.0, 1.0], [2.0, 0.0, 1.0, -1.0]]))
        self.assertEqual((mode.dtype, mode.numpy().tolist()), (tf.int32, [1, 0]))


if __name__ == "__main__":
    absltest.main()

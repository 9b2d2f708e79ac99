"""Tests of categorical policies against naive loops."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from laser_tf.ops import categorical
from testing import numpy_reference
from testing.ops import rlax_oracle

T, B, A, N = 9, 6, 5, 32


def _logits(seed=0):
    """Returns logits of pi and mu, [N, A] each, from nearly uniform to nearly deterministic."""
    rng = np.random.default_rng(seed)
    scale = np.linspace(0.1, 4.0, N)[:, None]
    pi, mu = scale * rng.normal(size=[2, N, A])
    return pi.astype(np.float32), mu.astype(np.float32)


class LogProbabilityTest(absltest.TestCase):
    def test_any_leading_axes_match_the_naive_formula(self):
        logits, _ = _logits()
        actions = np.random.default_rng(1).integers(A, size=N)
        expected = numpy_reference.log_softmax(logits)[np.arange(N), actions]
        actual = categorical.log_probability(logits, tf.constant(actions))
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
        shaped = categorical.log_probability(
            logits.reshape(4, 8, A), tf.constant(actions.reshape(4, 8))
        )
        np.testing.assert_array_equal(tf.reshape(shaped, [N]), actual)


class EntropyTest(absltest.TestCase):
    def test_entropy_is_in_nats(self):
        logits = tf.constant([[0.0] * A, [7.0] * A, [1e4] + [0.0] * (A - 1)])
        np.testing.assert_allclose(
            categorical.entropy(logits), [np.log(A), np.log(A), 0.0], rtol=1e-6
        )


class KlDivergenceTest(absltest.TestCase):
    def test_kl_matches_the_naive_loop_and_rlax(self):
        p, q = _logits()
        expected = numpy_reference.kl_divergence(
            numpy_reference.softmax(p), numpy_reference.softmax(q)
        )
        np.testing.assert_allclose(categorical.kl_divergence(p, q), expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(rlax_oracle.kl_divergence(p, q), expected, rtol=1e-4, atol=1e-6)

    def test_leading_axes_are_kept(self):
        p, q = _logits()
        shaped = categorical.kl_divergence(p.reshape(4, 8, A), q.reshape(4, 8, A))
        np.testing.assert_array_equal(tf.reshape(shaped, [N]), categorical.kl_divergence(p, q))


class LogImportanceRatioTest(absltest.TestCase):
    def test_ratio_matches_the_naive_loop(self):
        rng = np.random.default_rng(0)
        pi, mu = rng.normal(size=[2, T, B, A]).astype(np.float32)
        actions = rng.integers(A, size=[T, B])
        np.testing.assert_allclose(
            categorical.log_importance_ratio(pi, mu, tf.constant(actions)),
            numpy_reference.log_importance_ratios(pi, mu, actions),
            rtol=1e-5,
            atol=1e-5,
        )

    def test_preferred_action_has_a_ratio_above_one(self):
        ratios = categorical.log_importance_ratio(
            target_logits=tf.math.log([[[0.8, 0.2]] * 2]),
            behaviour_logits=tf.math.log([[[0.4, 0.6]] * 2]),
            actions=tf.constant([[0, 1]]),
        )
        np.testing.assert_allclose(tf.exp(ratios), [[2.0, 1 / 3]], rtol=1e-6)

    def test_nearly_deterministic_policies_have_finite_ratios(self):
        pi, mu = tf.constant([[1e4, 0.0, -1e4]]), tf.constant([[-1e4, 0.0, 1e4]])
        for action, expected in enumerate((2e4, 0.0, -2e4)):
            ratio = categorical.log_importance_ratio(pi, mu, tf.constant([action]))
            np.testing.assert_allclose(ratio, [expected])


if __name__ == "__main__":
    absltest.main()

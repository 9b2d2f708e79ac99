"""Tests expected estimates on a random bandit against the true gradient."""

import math

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import leave_one_out
from testing import numpy_reference
from testing.ops.cases import BETA_CLIPS, A

ESTIMATES = ("beta_leave_one_out", "truncated_importance_sampling")


class BanditTest(parameterized.TestCase):
    def _bandit(self, seed):
        rng = np.random.default_rng(seed)
        logits = rng.normal(size=[A]).astype(np.float32)
        mu = numpy_reference.softmax(rng.normal(size=[A])).astype(np.float32)
        true_values, q_values = rng.normal(size=[2, A]).astype(np.float32)
        pi = numpy_reference.softmax(logits)
        jacobian = np.diag(pi) - np.outer(pi, pi)  # d pi(a) / d logits[b]
        return (logits, mu, true_values, q_values), jacobian

    def _expected_estimate(self, name, bandit, clip):
        """Returns the expectation under mu of the estimate with returns Q^pi(a), [A]."""
        logits, mu, true_values, q_values = map(tf.constant, bandit)
        weights = {"mu_taken": mu[None]}
        if name == "truncated_importance_sampling":
            weights = {"mu": tf.tile(mu[None, None], [1, A, 1])}
        with tf.GradientTape() as tape:
            tape.watch(logits)
            losses = getattr(leave_one_out, name)(
                pi=tf.tile(tf.nn.softmax(logits)[None, None], [1, A, 1]),
                q_values=tf.tile(q_values[None, None], [1, A, 1]),
                returns=true_values[None],
                actions=tf.range(A)[None],
                mask=tf.ones([1, A], tf.bool),
                clip=clip,
                **weights,
            )
            loss = tf.reduce_sum(mu * losses[0])
        return -tape.gradient(loss, logits).numpy()

    @parameterized.product(seed=(0, 1), clip=BETA_CLIPS)
    def test_bias_of_beta_leave_one_out_matches_proposition_1(self, seed, clip):
        bandit, jacobian = self._bandit(seed)
        _, mu, true_values, q_values = bandit
        estimate = self._expected_estimate("beta_leave_one_out", bandit, clip)
        bias = ((1 - mu * np.minimum(clip, 1 / mu)) * (q_values - true_values)) @ jacobian
        self.assertEqual(np.abs(bias).max() > 1e-3, clip < 1 / mu.min())
        np.testing.assert_allclose(estimate - true_values @ jacobian, bias, atol=1e-6)

    @parameterized.product(name=ESTIMATES, seed=(0, 1), clip=BETA_CLIPS)
    def test_correct_values_or_infinite_clip_are_unbiased(self, name, seed, clip):
        (logits, mu, true_values, q_values), jacobian = self._bandit(seed)
        q_values = q_values if clip == math.inf else true_values
        estimate = self._expected_estimate(name, (logits, mu, true_values, q_values), clip)
        np.testing.assert_allclose(estimate, true_values @ jacobian, atol=1e-6)


if __name__ == "__main__":
    absltest.main()

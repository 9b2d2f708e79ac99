import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import categorical, trust_region
from testing import numpy_reference

N, A = 32, 5
EXTREME = np.array(
    [[1e4, 0.0, -1e4], [-1e4, 0.0, 1e4], [0.0, 0.0, 0.0], [1e4, 1e4, -1e4]], np.float32
)
# Relevances of section 4.3 and of algorithm 1, KL(pi || mu), with common properties.
RELEVANCES = {"implied": trust_region.implied_relevance, "behaviour": categorical.kl_divergence}


def _logits(seed=0):
    """Returns logits of pi and mu, [N, A] each, from nearly uniform to nearly deterministic."""
    scale = np.linspace(0.1, 4.0, N)[:, None]
    pi, mu = scale * np.random.default_rng(seed).normal(size=[2, N, A])
    return pi.astype(np.float32), mu.astype(np.float32)


class RelevanceTest(parameterized.TestCase):
    @parameterized.product(rho_bar=(0.5, 1.0, 2.0, np.inf), shift=(0.0, 3.0))
    def test_implied_policy_and_relevance_match_the_paper(self, rho_bar, shift):
        # Equation 3, and KL(pi || pi~_mu) of section 4.3. Shifted logits have the same policies.
        pi, mu = _logits()
        p, q = numpy_reference.softmax(pi), numpy_reference.softmax(mu)
        implied = numpy_reference.implied_policy(p, q, rho_bar)
        logits = tf.constant(pi + shift), tf.constant(mu - 2 * shift)
        actual = trust_region.implied_policy_log_probabilities(*logits, rho_bar)
        np.testing.assert_allclose(tf.exp(actual), implied, rtol=1e-4)
        with tf.GradientTape() as tape:
            tape.watch(logits[0])
            relevance = trust_region.implied_relevance(*logits, rho_bar)
        self.assertIsNone(tape.gradient(relevance, logits[0]))
        expected = numpy_reference.kl_divergence(p, implied)
        np.testing.assert_allclose(relevance, expected, rtol=1e-4, atol=2e-6)

    @parameterized.product(name=tuple(RELEVANCES), compiled=(False, True))
    def test_nearly_deterministic_policies_are_finite(self, name, compiled):
        # All pairs of policies with probabilities that underflow float32.
        pi, mu = np.repeat(EXTREME, len(EXTREME), axis=0), np.tile(EXTREME, [len(EXTREME), 1])
        actual = tf.function(RELEVANCES[name], jit_compile=compiled)(pi, mu)
        self.assertTrue(np.isfinite(actual).all())
        np.testing.assert_allclose(actual[:: len(EXTREME) + 1], np.zeros(len(EXTREME)), atol=1e-5)
        # pi always takes action 0 and mu always action 2, which exceeds any useful threshold.
        self.assertGreater(actual[1], 1e3)

    @parameterized.parameters(*RELEVANCES)
    def test_missing_action_of_mu_has_infinite_beta(self, name):
        pi, mu = np.zeros([1, 2], np.float32), np.array([[0.0, -np.inf]], np.float32)
        np.testing.assert_array_equal(RELEVANCES[name](pi, mu), [np.inf])


if __name__ == "__main__":
    absltest.main()

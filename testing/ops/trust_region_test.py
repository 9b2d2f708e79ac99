import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import categorical, trust_region
from testing import numpy_reference

N, A = 32, 5
EXTREME = np.array(
    [[1e4, 0.0, -1e4], [-1e4, 0.0, 1e4], [0.0, 0.0, 0.0], [1e4, 1e4, -1e4]], np.float32
)


def _logits(seed=0):
    """Returns logits of pi and mu, [N, A] each, from nearly uniform to nearly deterministic."""
    rng = np.random.default_rng(seed)
    scale = np.linspace(0.1, 4.0, N)[:, None]
    pi, mu = scale * rng.normal(size=[2, N, A])
    return pi.astype(np.float32), mu.astype(np.float32)


class ImpliedPolicyTest(parameterized.TestCase):
    @parameterized.parameters(0.5, 1.0, 2.0, np.inf)
    def test_implied_policy_matches_equation_3(self, rho_bar):
        pi, mu = _logits()
        actual = tf.exp(trust_region.implied_policy_log_probabilities(pi, mu, rho_bar))
        expected = numpy_reference.implied_policy(
            numpy_reference.softmax(pi), numpy_reference.softmax(mu), rho_bar
        )
        np.testing.assert_allclose(actual, expected, rtol=1e-5)

    def test_rho_bar_interpolates_between_mu_and_pi(self):
        # IMPALA, remark 3: V-trace evaluates mu for rho_bar near 0, and pi without a clip.
        pi, mu = _logits()
        nearly_zero = trust_region.implied_policy_log_probabilities(pi, mu, rho_bar=1e-6)
        np.testing.assert_allclose(nearly_zero, tf.nn.log_softmax(mu), rtol=1e-4, atol=1e-4)
        no_clip = trust_region.implied_policy_log_probabilities(pi, mu, rho_bar=np.inf)
        np.testing.assert_allclose(no_clip, tf.nn.log_softmax(pi), rtol=1e-5, atol=1e-6)

    def test_shifted_logits_have_the_same_implied_policy(self):
        pi, mu = _logits()
        shifted = trust_region.implied_policy_log_probabilities(pi + 3.0, mu - 5.0)
        expected = trust_region.implied_policy_log_probabilities(pi, mu)
        np.testing.assert_allclose(shifted, expected, rtol=1e-4, atol=1e-5)


def _implied(pi, mu):
    return trust_region.implied_relevance(pi, mu)


# Relevances of section 4.3 and of algorithm 1, KL(pi || mu), with common properties.
RELEVANCES = {"implied": _implied, "behaviour": categorical.kl_divergence}


class RelevanceTest(parameterized.TestCase):
    @parameterized.parameters(0.5, 1.0, 2.0)
    def test_implied_relevance_matches_its_definition(self, rho_bar):
        # LASER, section 4.3: KL(pi || pi~_mu).
        pi, mu = _logits()
        p, q = numpy_reference.softmax(pi), numpy_reference.softmax(mu)
        np.testing.assert_allclose(
            trust_region.implied_relevance(pi, mu, rho_bar),
            numpy_reference.kl_divergence(p, numpy_reference.implied_policy(p, q, rho_bar)),
            rtol=1e-4,
            atol=1e-6,
        )

    @parameterized.parameters(*RELEVANCES)
    def test_own_experience_is_most_relevant(self, name):
        pi, mu = _logits()
        own = RELEVANCES[name](pi, pi + 2.0)
        np.testing.assert_allclose(own, np.zeros(N), atol=1e-5)
        other = RELEVANCES[name](pi, mu)
        self.assertTrue((other.numpy() > own.numpy()).all())

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

    def test_target_policy_receives_no_gradient(self):
        pi, mu = map(tf.constant, _logits())
        with tf.GradientTape() as tape:
            tape.watch(pi)
            actual = trust_region.implied_relevance(pi, mu)
        self.assertIsNone(tape.gradient(actual, pi))


if __name__ == "__main__":
    absltest.main()

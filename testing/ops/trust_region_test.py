import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import trust_region
from testing import numpy_reference
from testing.ops import rlax_oracle

N, A = 32, 5
EXTREME = np.array(
    [[1e4, 0.0, -1e4], [-1e4, 0.0, 1e4], [0.0, 0.0, 0.0], [1e4, 1e4, -1e4]], np.float32
)


def _logits(seed=0):
    """Target and behaviour logits, [N, A] each, from nearly uniform to nearly deterministic."""
    rng = np.random.default_rng(seed)
    scale = np.linspace(0.1, 4.0, N)[:, None]
    pi, mu = scale * rng.normal(size=[2, N, A])
    return pi.astype(np.float32), mu.astype(np.float32)


class ImpliedPolicyTest(parameterized.TestCase):
    @parameterized.parameters(0.5, 1.0, 2.0, np.inf)
    def test_equals_equation_3(self, rho_bar):
        pi, mu = _logits()
        actual = tf.exp(trust_region.implied_policy_log_probabilities(pi, mu, rho_bar))
        expected = numpy_reference.implied_policy(
            numpy_reference.softmax(pi), numpy_reference.softmax(mu), rho_bar
        )
        np.testing.assert_allclose(actual, expected, rtol=1e-5)

    def test_lies_between_behaviour_and_target(self):
        # IMPALA, remark 3: V-trace evaluates mu as rho_bar goes to 0, pi without a clip.
        pi, mu = _logits()
        nearly_zero = trust_region.implied_policy_log_probabilities(pi, mu, rho_bar=1e-6)
        np.testing.assert_allclose(nearly_zero, tf.nn.log_softmax(mu), rtol=1e-4, atol=1e-4)
        no_clip = trust_region.implied_policy_log_probabilities(pi, mu, rho_bar=np.inf)
        np.testing.assert_allclose(no_clip, tf.nn.log_softmax(pi), rtol=1e-5, atol=1e-6)

    def test_does_not_depend_on_a_shift_of_the_logits(self):
        pi, mu = _logits()
        shifted = trust_region.implied_policy_log_probabilities(pi + 3.0, mu - 5.0)
        expected = trust_region.implied_policy_log_probabilities(pi, mu)
        np.testing.assert_allclose(shifted, expected, rtol=1e-4, atol=1e-5)


class KlDivergenceTest(absltest.TestCase):
    def test_equals_the_naive_loop_and_rlax(self):
        p, q = _logits()
        expected = numpy_reference.kl_divergence(
            numpy_reference.softmax(p), numpy_reference.softmax(q)
        )
        np.testing.assert_allclose(trust_region.kl_divergence(p, q), expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(rlax_oracle.kl_divergence(p, q), expected, rtol=1e-4, atol=1e-6)

    def test_keeps_leading_axes(self):
        p, q = _logits()
        shaped = trust_region.kl_divergence(p.reshape(4, 8, A), q.reshape(4, 8, A))
        np.testing.assert_array_equal(tf.reshape(shaped, [N]), trust_region.kl_divergence(p, q))


class BehaviourRelevanceTest(parameterized.TestCase):
    @parameterized.parameters(0.5, 1.0, 2.0)
    def test_implied_is_the_divergence_from_the_implied_policy(self, rho_bar):
        # LASER, section 4.3: KL(pi || pi~_mu).
        pi, mu = _logits()
        p, q = numpy_reference.softmax(pi), numpy_reference.softmax(mu)
        np.testing.assert_allclose(
            trust_region.behaviour_relevance(pi, mu, relevance="implied", rho_bar=rho_bar),
            numpy_reference.kl_divergence(p, numpy_reference.implied_policy(p, q, rho_bar)),
            rtol=1e-4,
            atol=1e-6,
        )

    def test_behaviour_is_the_divergence_from_the_behaviour_policy(self):
        # LASER, algorithm 1: KL(pi || mu), whatever the clip.
        pi, mu = _logits()
        np.testing.assert_allclose(
            trust_region.behaviour_relevance(pi, mu, relevance="behaviour", rho_bar=0.5),
            numpy_reference.kl_divergence(numpy_reference.softmax(pi), numpy_reference.softmax(mu)),
            rtol=1e-4,
            atol=1e-6,
        )

    @parameterized.parameters("implied", "behaviour")
    def test_experience_of_the_target_policy_is_the_most_relevant(self, relevance):
        pi, mu = _logits()
        own = trust_region.behaviour_relevance(pi, pi + 2.0, relevance=relevance)
        np.testing.assert_allclose(own, np.zeros(N), atol=1e-5)
        other = trust_region.behaviour_relevance(pi, mu, relevance=relevance)
        self.assertTrue((other.numpy() > own.numpy()).all())

    @parameterized.product(relevance=("implied", "behaviour"), compiled=(False, True))
    def test_is_finite_for_nearly_deterministic_policies(self, relevance, compiled):
        # Every pair of policies whose probabilities underflow float32.
        pi, mu = np.repeat(EXTREME, len(EXTREME), axis=0), np.tile(EXTREME, [len(EXTREME), 1])
        function = tf.function(trust_region.behaviour_relevance, jit_compile=compiled)
        actual = function(pi, mu, relevance=relevance)
        self.assertTrue(np.isfinite(actual).all())
        np.testing.assert_allclose(actual[:: len(EXTREME) + 1], np.zeros(len(EXTREME)), atol=1e-5)
        # pi surely takes action 0, mu surely action 2: no threshold should trust that.
        self.assertGreater(actual[1], 1e3)

    def test_a_behaviour_that_lacks_an_action_of_the_target_policy_is_infinitely_irrelevant(self):
        pi, mu = np.zeros([1, 2], np.float32), np.array([[0.0, -np.inf]], np.float32)
        for relevance in ("implied", "behaviour"):
            actual = trust_region.behaviour_relevance(pi, mu, relevance=relevance)
            np.testing.assert_array_equal(actual, [np.inf])

    @parameterized.parameters("implied", "behaviour")
    def test_no_gradient_flows_into_the_target_policy(self, relevance):
        pi, mu = map(tf.constant, _logits())
        with tf.GradientTape() as tape:
            tape.watch(pi)
            actual = trust_region.behaviour_relevance(pi, mu, relevance=relevance)
        self.assertIsNone(tape.gradient(actual, pi))

    def test_an_unknown_relevance_raises_and_names_the_choices(self):
        pi, mu = _logits()
        with self.assertRaisesRegex(ValueError, "'kl'.*'implied'.*'behaviour'"):
            trust_region.behaviour_relevance(pi, mu, relevance="kl")


if __name__ == "__main__":
    absltest.main()

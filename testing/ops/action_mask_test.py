"""Tests that masked categorical policies equal policies over their allowed actions only."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.distributions import policy_statistics
from laser_tf.ops import action_mask, categorical, leave_one_out, trust_region
from testing import numpy_reference

N, A, ALLOWED = 50, 5, 3


def _policies() -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """Returns a mask [N, A], two arrays of logits [N, A], and their allowed logits [N, 3]."""
    generator = np.random.default_rng(0)
    mask = generator.permuted(np.tile(np.arange(A) < ALLOWED, [N, 1]), axis=1)
    logits = [3 * generator.normal(size=(N, A)).astype(np.float32) for _ in range(2)]
    return mask, logits, [values[mask].reshape(N, ALLOWED) for values in logits]


class ActionMaskTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.mask, self.logits, self.allowed = _policies()

    def _value_and_gradient(self, function) -> tuple[np.ndarray, np.ndarray]:
        """Returns a function of the masked policies, and its gradient in the raw logits.

        Results for each action, [N, A], are returned for allowed actions, [N, 3].
        """
        target, behaviour = map(tf.constant, self.logits)
        with tf.GradientTape() as tape:
            tape.watch(target)
            value = function(*(action_mask.apply(x, self.mask) for x in (target, behaviour)))
            if value.shape.rank == 2:
                value = tf.reshape(tf.boolean_mask(value, self.mask), [N, ALLOWED])
        return value.numpy(), tape.gradient(value, target)

    @parameterized.parameters(
        (lambda pi, _: categorical.entropy(pi),),
        (categorical.kl_divergence,),
        (lambda pi, mu: trust_region.implied_policy_log_probabilities(pi, mu, 1.3),),
        (lambda pi, mu: policy_statistics.Probabilities().divergence_gradient(mu, pi),),
        (lambda pi, mu: policy_statistics.Probabilities().entropy_gradient(pi),),
        (lambda pi, mu: policy_statistics.Logits().divergence_gradient(mu, pi),),
        (lambda pi, mu: policy_statistics.Logits().entropy_gradient(pi),),
    )
    def test_masked_policies_equal_policies_over_allowed_actions(self, function):
        value, gradient = self._value_and_gradient(function)
        with tf.GradientTape() as tape:
            target, behaviour = map(tf.constant, self.allowed)
            tape.watch(target)
            expected = function(target, behaviour)
        expected_gradient = tape.gradient(expected, target)
        np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)
        if expected_gradient is not None:
            gradient = gradient.numpy()
            np.testing.assert_array_equal(gradient[~self.mask], 0)
            np.testing.assert_allclose(
                gradient[self.mask].reshape(N, ALLOWED), expected_gradient, rtol=1e-3, atol=1e-4
            )

    def test_relevance_of_forbidden_actions_is_0(self):
        relevance, _ = self._value_and_gradient(trust_region.implied_relevance)
        pi, mu = map(numpy_reference.softmax, self.allowed)
        implied = numpy_reference.implied_policy(pi, mu)
        expected = numpy_reference.kl_divergence(pi, implied)
        np.testing.assert_allclose(relevance, expected, rtol=1e-4, atol=1e-5)

    @parameterized.parameters("entropy_gradient", "divergence_gradient")
    def test_statistics_of_forbidden_actions_have_no_gradient(self, name):
        pi, mu = (action_mask.apply(x, self.mask) for x in self.logits)
        arguments = (pi,) if name == "entropy_gradient" else (mu, pi)
        for statistics in (policy_statistics.Probabilities(), policy_statistics.Logits()):
            gradient = getattr(statistics, name)(*arguments).numpy()
            np.testing.assert_array_equal(gradient[~self.mask], 0)

    def test_mask_that_forbids_every_action_allows_all(self):
        mask = tf.constant([[False, False], [True, False]])
        values = action_mask.apply(tf.ones([2, 2]), mask)
        np.testing.assert_array_equal(action_mask.is_allowed(values), [[True, True], [True, False]])

    def test_log_probabilities_of_0_are_finite_without_gradient(self):
        probabilities = tf.Variable([0.25, 0.75, 0.0])
        with tf.GradientTape() as tape:
            logs = action_mask.log_probabilities(probabilities)
        np.testing.assert_allclose(logs, [np.log(0.25), np.log(0.75), -1e9], rtol=1e-6)
        np.testing.assert_allclose(tape.gradient(logs, probabilities), [4, 4 / 3, 0], rtol=1e-6)

    def test_tislr_of_probability_0_is_finite(self):
        pi = tf.Variable([[[0.25, 0.75, 0.0]]])
        with tf.GradientTape() as tape:
            loss = leave_one_out.truncated_importance_sampling(
                pi,
                tf.constant([[[1.0, 2.0, 9.0]]]),
                tf.constant([[3.0]]),
                tf.constant([[0]]),
                tf.constant([[[0.5, 0.5, 0.0]]]),
                tf.constant([[True]]),
                clip=1.0,
            )
        gradient = tape.gradient(loss, pi).numpy()[0, 0]
        # 0.5 (3 - 1.75) / 0.25 and (0.75 - 0.5) (2 - 1.75) / 0.75
        np.testing.assert_allclose(gradient, [-2.5, -0.0625 / 0.75, 0], rtol=1e-5)
        self.assertTrue(np.isfinite(loss).all())


if __name__ == "__main__":
    absltest.main()

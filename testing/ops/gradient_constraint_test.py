"""Tests of the trust region of ACER: closed form, optimality and effect on policies."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf.distributions import factory
from laser_tf.ops import gradient_constraint
from testing import numpy_reference

N, S = 40, 5
DISCRETE = specs.DiscreteArray(2)
CONTINUOUS = specs.BoundedArray([2], np.float32, -1.0, 1.0)


def _inputs(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=[N, S]), rng.normal(size=[N, S])


class ConstrainTest(parameterized.TestCase):
    @parameterized.parameters(0.0, 0.5, 2.0)
    def test_closed_form_matches_the_projection(self, delta):
        g, k = _inputs()
        z = gradient_constraint.constrain(tf.constant(g), tf.constant(k), delta).numpy()
        for n in range(N):
            expected = numpy_reference.constrain(g[n], k[n], delta)
            np.testing.assert_allclose(z[n], expected, rtol=1e-9, atol=1e-12)
        inside = (g * k).sum(-1) <= delta
        self.assertBetween(inside.mean(), 0.1, 0.9)  # both cases occur
        np.testing.assert_array_equal(z[inside], g[inside])
        np.testing.assert_allclose((z * k).sum(-1)[~inside], delta, atol=1e-9)

    def test_no_valid_direction_is_nearer(self):
        g, k = _inputs(1)
        z = gradient_constraint.constrain(tf.constant(g), tf.constant(k), 0.5).numpy()
        others = z[None] + 0.1 * np.random.default_rng(2).normal(size=[200, N, S])
        valid = (others * k).sum(-1) <= 0.5
        distances = np.square(others - g).sum(-1)
        self.assertTrue((distances >= np.square(z - g).sum(-1) - 1e-12)[valid].all())

    def test_zero_divergence_gradient_constrains_nothing(self):
        g = tf.constant([[3.0, -2.0]])
        np.testing.assert_array_equal(
            gradient_constraint.constrain(g, tf.zeros_like(g), 0.0), g.numpy()
        )

    def test_loss_gradient_is_minus_the_direction(self):
        statistics, direction = tf.Variable([[0.5, 1.0]]), tf.Variable([[2.0, -3.0]])
        with tf.GradientTape() as tape:
            loss = gradient_constraint.ascent_loss(statistics, direction)
        gradients = tape.gradient(loss, [statistics, direction])
        np.testing.assert_array_equal(gradients[0], -direction.numpy())
        self.assertIsNone(gradients[1])


class BoundTest(parameterized.TestCase):
    @parameterized.named_parameters(
        ("worse_action", "probabilities", DISCRETE, -3.0),
        ("worse_action_with_logits", "logits", DISCRETE, -3.0),
        ("better_action_with_logits", "logits", DISCRETE, 3.0),
        ("drifting_mean", "logits", CONTINUOUS, 3.0),
    )
    def test_small_delta_bounds_the_divergence(self, statistics_name, action, advantage):
        # All updates have the same direction. The average policy lags by about 20 updates.
        free, bounded = (
            self._max_divergence(statistics_name, action, advantage, delta) for delta in (1e9, 0.01)
        )
        self.assertGreater(free, 0.2)
        self.assertLess(bounded, free / 3)

    def _max_divergence(self, statistics_name, action, advantage, delta) -> float:
        """Returns the max KL(average || policy) in nats, for trainable network outputs."""
        family, statistics = factory.make_with_statistics(action, statistics_name, 0.3)
        outputs = average = tf.zeros([family.output_size])
        rate = 0.005 if action is CONTINUOUS else 0.2
        taken = tf.constant(0), tf.constant([0.3, 0.0])
        divergence = 0.0
        for _ in range(100):
            with tf.GradientTape() as tape:
                tape.watch(outputs)
                policy = family.parameters(outputs)
                score = statistics.score(policy, *taken)
                if action is CONTINUOUS:  # towards an action at a constant distance
                    score = tf.constant([0.3, 0.0]) / 0.3**2
                k = statistics.divergence_gradient(family.parameters(average), policy)
                z = gradient_constraint.constrain(advantage * score, k, delta)
                loss = gradient_constraint.ascent_loss(statistics.compute(policy), z)
            outputs -= rate * tape.gradient(loss, outputs)
            average = 0.95 * average + 0.05 * outputs
            policies = family.parameters(average), family.parameters(outputs)
            divergence = max(divergence, float(family.kl_divergence(*policies)))
        return divergence


if __name__ == "__main__":
    absltest.main()

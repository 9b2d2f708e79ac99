"""ACER's closed form against a projection by hand, and against its own optimality conditions."""

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
    def test_equals_the_projection(self, delta):
        g, k = _inputs()
        z = gradient_constraint.constrain(tf.constant(g), tf.constant(k), delta).numpy()
        for row in range(N):
            expected = numpy_reference.constrained(g[row], k[row], delta)
            np.testing.assert_allclose(z[row], expected, rtol=1e-9, atol=1e-12)
        inside = (g * k).sum(-1) <= delta
        self.assertBetween(inside.mean(), 0.1, 0.9)  # both cases are there
        np.testing.assert_array_equal(z[inside], g[inside])
        np.testing.assert_allclose((z * k).sum(-1)[~inside], delta, atol=1e-9)

    def test_no_allowed_direction_is_nearer(self):
        g, k = _inputs(1)
        z = gradient_constraint.constrain(tf.constant(g), tf.constant(k), 0.5).numpy()
        others = z[None] + 0.1 * np.random.default_rng(2).normal(size=[200, N, S])
        allowed = (others * k).sum(-1) <= 0.5
        distances = np.square(others - g).sum(-1)
        self.assertTrue((distances >= np.square(z - g).sum(-1) - 1e-12)[allowed].all())

    def test_without_a_divergence_nothing_is_constrained(self):
        g = tf.constant([[3.0, -2.0]])
        np.testing.assert_array_equal(
            gradient_constraint.constrain(g, tf.zeros_like(g), 0.0), g.numpy()
        )

    def test_the_losss_descent_is_the_directions_ascent(self):
        statistics, direction = tf.Variable([[0.5, 1.0]]), tf.Variable([[2.0, -3.0]])
        with tf.GradientTape() as tape:
            loss = gradient_constraint.ascent_loss(statistics, direction)
        into_statistics, into_direction = tape.gradient(loss, [statistics, direction])
        np.testing.assert_array_equal(into_statistics, -direction.numpy())
        self.assertIsNone(into_direction)


class BoundTest(parameterized.TestCase):
    @parameterized.named_parameters(
        ("a_worse_action", "probabilities", DISCRETE, -3.0),
        ("a_worse_action_by_logits", "logits", DISCRETE, -3.0),
        ("a_better_action_by_logits", "logits", DISCRETE, 3.0),
        ("a_mean_that_drifts", "logits", CONTINUOUS, 3.0),
    )
    def test_a_policy_stays_near_its_average(self, kind, action, advantage):
        """Pushed the same way in every update; the average follows with a lag of 20 updates."""
        free, held = (self._largest(kind, action, advantage, delta) for delta in (1e9, 0.01))
        self.assertGreater(free, 1.0)
        self.assertLess(held, 0.2)

    def _largest(self, kind, action, advantage, delta) -> float:
        """The largest divergence, in nats, of a policy that has its outputs for weights."""
        family, statistics = factory.make_with_statistics(action, kind, 0.3)
        outputs = average = tf.zeros([family.output_size])
        rate = 0.02 if action is CONTINUOUS else 1.0
        taken = tf.constant(0), tf.constant([0.3, 0.0])
        largest = 0.0
        for _ in range(100):
            with tf.GradientTape() as tape:
                tape.watch(outputs)
                policy = family.parameters(outputs)
                score = statistics.score(policy, *taken)
                if action is CONTINUOUS:  # towards an action that is always as far away
                    score = tf.constant([0.3, 0.0]) / 0.3**2
                k = statistics.divergence_gradient(family.parameters(average), policy)
                z = gradient_constraint.constrain(advantage * score, k, delta)
                loss = gradient_constraint.ascent_loss(statistics.of(policy), z)
            outputs -= rate * tape.gradient(loss, outputs)
            average = 0.95 * average + 0.05 * outputs
            policies = family.parameters(average), family.parameters(outputs)
            largest = max(largest, float(family.kl_divergence(*policies)))
        return largest


if __name__ == "__main__":
    absltest.main()

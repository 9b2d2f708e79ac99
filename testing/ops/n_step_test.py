import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import n_step, value_rescaling
from testing import numpy_reference
from testing.ops.cases import GAMMA, A, B, T


class NStepReturnsTest(parameterized.TestCase):
    @parameterized.product(discount=(0.0, 1.0), n=(1, 2, 3, 7))
    def test_only_time_limits_bootstrap_at_the_end(self, discount, n):
        # x_2 ends the episode, by termination or a time limit. x_3 starts the next.
        gamma, v, r = 0.5, [1.0, 2.0, 4.0, 8.0, 16.0], [3.0, 5.0, np.nan, 7.0]
        returns = n_step.n_step_returns(
            rewards=tf.constant(r)[:, None],
            discounts=tf.constant([[gamma], [gamma * discount], [gamma], [gamma]]),
            bootstrap_values=tf.constant(v)[:, None],
            is_transition=tf.constant([[True], [True], [False], [True]]),
            n=n,
        )
        last = r[1] + gamma * discount * v[2]
        first = r[0] + gamma * (v[1] if n == 1 else last)
        np.testing.assert_array_equal(returns[:, 0], [first, last, v[2], r[3] + gamma * v[4]])


class DoubleQTargetsTest(parameterized.TestCase):
    @parameterized.parameters((1e-3, 2.008), (None, 6.5 + 0.5 * 1.003))
    def test_online_network_selects_the_action(self, rescaling_epsilon, expected):
        # h(3) = 1.003 and h(8) = 2.008. The online network selects the action with target value 3,
        # although the other action has target value 8. The target is 6.5 + 0.5 * 3 = 8.
        targets = n_step.double_q_targets(
            q_online=tf.constant([[[5.0, 0.0]], [[1.0, 2.0]]]),
            q_target=tf.constant([[[-7.0, 7.0]], [[2.008, 1.003]]]),
            rewards=tf.constant([[6.5]]),
            discounts=tf.constant([[0.5]]),
            is_transition=tf.constant([[True]]),
            n=5,
            rescaling_epsilon=rescaling_epsilon,
        )
        np.testing.assert_allclose(targets, [[expected]], rtol=1e-6)

    @parameterized.product(rescaling_epsilon=(1e-3, None), n=(1, 5, 3 * T))
    def test_correct_values_are_a_fixed_point(self, rescaling_epsilon, n):
        # A constant reward of 2 has the value 2 / (1 - gamma), for any n.
        value = tf.fill([T + 1, B, A], 2.0 / (1.0 - GAMMA))
        q = value if rescaling_epsilon is None else value_rescaling.rescale(value, 1e-3)
        targets = n_step.double_q_targets(
            q_online=q,
            q_target=q,
            rewards=tf.fill([T, B], 2.0),
            discounts=tf.fill([T, B], GAMMA),
            is_transition=tf.ones([T, B], tf.bool),
            n=n,
            rescaling_epsilon=rescaling_epsilon,
        )
        np.testing.assert_allclose(targets, q[1:, :, 0], rtol=1e-5)


class SequencePrioritiesTest(parameterized.TestCase):
    @parameterized.product(eta=(0.0, 0.3, 0.9, 1.0), poison=(5.0, np.nan, -np.inf))
    def test_priorities_match_the_naive_loop(self, eta, poison):
        # The mask has empty, full, single-step and partial columns.
        rng = np.random.default_rng(0)
        mask = rng.uniform(size=[T, B]) > 0.4
        mask[:, 0], mask[:, 1], mask[:, 2] = False, True, np.arange(T) == 4
        errors = np.where(mask, rng.normal(size=[T, B]), poison).astype(np.float32)
        actual = n_step.sequence_priorities(errors, mask, eta)
        self.assertEqual((actual.dtype, actual.shape), (tf.float32, [B]))
        expected = numpy_reference.sequence_priorities(errors, mask, eta, n_step.MIN_PRIORITY)
        np.testing.assert_allclose(actual, expected, rtol=1e-5)
        self.assertGreater(actual.numpy().min(), 0.0)

    def test_priorities_match_a_manual_calculation(self):
        errors = tf.constant([[1.0, 4.0, 0.0], [-3.0, -9.0, 0.0], [2.0, 5.0, 8.0]])
        mask = tf.constant([[True, True, True], [True, False, True], [True, False, False]])
        with tf.GradientTape() as tape:
            tape.watch(errors)
            priorities = n_step.sequence_priorities(errors, mask, 0.9)
        np.testing.assert_allclose(priorities, [0.9 * 3 + 0.1 * 2, 4.0, 1e-6], rtol=1e-6)
        self.assertIsNone(tape.gradient(priorities, errors))


if __name__ == "__main__":
    absltest.main()

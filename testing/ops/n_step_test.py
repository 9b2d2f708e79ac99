import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import n_step
from testing import numpy_reference
from testing.ops.cases import B, T


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


if __name__ == "__main__":
    absltest.main()

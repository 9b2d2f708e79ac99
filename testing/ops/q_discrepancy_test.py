"""Delta Q on numbers that can be checked by hand."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from laser_tf.ops import q_discrepancy


class QDiscrepancyTest(absltest.TestCase):
    def test_it_is_the_distance_over_the_size_of_the_largest_q_value(self):
        q_values = tf.constant(
            [[[1.0, 2.0], [-3.0, -9.0]], [[4.0, -8.0], [-2.0, -5.0]]]
        )  # largest: 4 and -2
        here = q_values[1]
        stored = here + tf.constant([[3.0, 4.0], [0.0, 1.0]])
        np.testing.assert_allclose(
            q_discrepancy.q_discrepancy(q_values, here, stored), [5 / 4, 1 / 2], rtol=1e-6
        )

    def test_a_network_that_says_zero_has_a_finite_one(self):
        zeros = tf.zeros([2, 1, 3])
        self.assertEqual(q_discrepancy.q_discrepancy(zeros, zeros[0], zeros[0]), 0.0)

    def test_no_gradient_flows(self):
        q_values = tf.Variable(tf.ones([2, 1, 3]))
        with tf.GradientTape() as tape:
            result = q_discrepancy.q_discrepancy(q_values, q_values[0], 2 * q_values[1])
        self.assertIsNone(tape.gradient(result, q_values))


if __name__ == "__main__":
    absltest.main()

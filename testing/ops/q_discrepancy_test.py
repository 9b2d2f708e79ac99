"""Tests of Delta Q on small examples."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from laser_tf.ops import q_discrepancy


class QDiscrepancyTest(absltest.TestCase):
    def test_distance_is_divided_by_the_largest_q_value(self):
        q_values = tf.constant(
            [[[1.0, 2.0], [-3.0, -9.0]], [[4.0, -8.0], [-2.0, -5.0]]]
        )  # largest values: 4 and -2
        recomputed = q_values[1]
        stored = recomputed + tf.constant([[3.0, 4.0], [0.0, 1.0]])
        np.testing.assert_allclose(
            q_discrepancy.q_discrepancy(q_values, recomputed, stored), [5 / 4, 1 / 2], rtol=1e-6
        )

    def test_zero_q_values_have_zero_discrepancy(self):
        zeros = tf.zeros([2, 1, 3])
        self.assertEqual(q_discrepancy.q_discrepancy(zeros, zeros[0], zeros[0]), 0.0)

    def test_discrepancy_has_no_gradient(self):
        q_values = tf.Variable(tf.ones([2, 1, 3]))
        with tf.GradientTape() as tape:
            result = q_discrepancy.q_discrepancy(q_values, q_values[0], 2 * q_values[1])
        self.assertIsNone(tape.gradient(result, q_values))


if __name__ == "__main__":
    absltest.main()

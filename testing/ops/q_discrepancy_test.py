import numpy as np
import tensorflow as tf
from absl.testing import absltest

from laser_tf.ops import q_discrepancy


class QDiscrepancyTest(absltest.TestCase):
    def test_distance_is_divided_by_the_largest_q_value(self):
        # Largest values: 4, -2 and, for a new network, 0.
        q_values = tf.constant(
            [
                [[1.0, 2.0], [-3.0, -9.0], [0.0, 0.0]],
                [[4.0, -8.0], [-2.0, -5.0], [0.0, 0.0]],
            ]
        )
        stored = q_values[1] + tf.constant([[3.0, 4.0], [0.0, 1.0], [0.0, 0.0]])
        with tf.GradientTape() as tape:
            tape.watch([q_values, stored])
            actual = q_discrepancy.q_discrepancy(q_values, q_values[1], stored)
        np.testing.assert_allclose(actual, [5 / 4, 1 / 2, 0], rtol=1e-6)
        self.assertEqual(tape.gradient(actual, [q_values, stored]), [None, None])


if __name__ == "__main__":
    absltest.main()

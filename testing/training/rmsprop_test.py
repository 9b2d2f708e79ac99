"""RMSProp against TensorFlow 1's own class."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.training import rmsprop


class RMSPropTest(parameterized.TestCase):
    @parameterized.parameters((0.1, 0.0), (0.01, 0.0), (1e-5, 0.9))
    def test_steps_like_tensorflow_1(self, epsilon, momentum):
        start = np.array([1.0, -2.0, 3.0], np.float32)
        ours, theirs = tf.Variable(start), tf.Variable(start)
        optimizer = rmsprop.RMSProp([ours], decay=0.9, momentum=momentum, epsilon=epsilon)
        reference = tf.compat.v1.train.RMSPropOptimizer(
            0.05, decay=0.9, momentum=momentum, epsilon=epsilon
        )
        generator = np.random.default_rng(1)
        for _ in range(5):
            gradient = tf.constant(generator.normal(size=3), tf.float32)
            optimizer.apply([gradient], tf.constant(0.05))
            reference.apply_gradients([(gradient, theirs)])
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)

    def test_the_accumulator_starts_at_one(self):
        variable = tf.Variable(0.0)
        optimizer = rmsprop.RMSProp([variable], decay=0.99, epsilon=0.1)
        optimizer.apply([tf.constant(2.0)], tf.constant(1.0))
        # ms = 0.99 * 1 + 0.01 * 2^2
        np.testing.assert_allclose(variable, -2.0 / np.sqrt(1.03 + 0.1), rtol=1e-6)


if __name__ == "__main__":
    absltest.main()

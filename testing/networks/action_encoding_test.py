"""Tests the encoding of discrete and continuous actions."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest
from dm_env import specs

from laser_tf.networks import action_encoding


class EncodeTest(absltest.TestCase):
    def test_discrete_action_is_one_hot(self):
        encoded = action_encoding.encode(specs.DiscreteArray(3), tf.constant([[2, 0]]))
        np.testing.assert_array_equal(encoded, [[[0, 0, 1], [1, 0, 0]]])

    def test_continuous_action_is_scaled_by_its_bounds(self):
        bounds = specs.BoundedArray([2], np.float32, [-2, 0], [2, 10])
        encoded = action_encoding.encode(bounds, tf.constant([[[-2.0, 10.0], [1.0, 5.0]]]))
        np.testing.assert_allclose(encoded, [[[-1, 1], [0.5, 0]]], atol=1e-6)

    def test_equal_bounds_encode_to_zero(self):
        bounds = specs.BoundedArray([1], np.float32, [3], [3])
        np.testing.assert_array_equal(action_encoding.encode(bounds, tf.constant([[3.0]])), [[0]])


if __name__ == "__main__":
    absltest.main()

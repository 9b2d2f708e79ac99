"""Tests the heads."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.networks import heads

R, B, F, A = 4, 6, 5, 2


def _features(*shape):
    return tf.constant(np.random.default_rng(0).normal(size=[*shape, F]), tf.float32)


def _by_shape(head, *shape):
    """Returns the only variable of the head with a shape."""
    (variable,) = [v for v in head.trainable_variables if v.shape == shape]
    return variable


class DuelingHeadTest(parameterized.TestCase):
    @parameterized.parameters(((R, B),), ((B,),))
    def test_bfloat16_features_give_float32_q_values(self, shape):
        head = heads.DuelingHead(A, 7)
        q = head(tf.cast(_features(*shape), tf.bfloat16))
        self.assertEqual((q.shape, q.dtype), ([*shape, A], tf.float32))
        self.assertTrue(all(v.dtype == tf.float32 for v in head.trainable_variables))

    def test_paper_streams_have_expected_parameter_count(self):
        head = heads.DuelingHead(18)
        head(tf.zeros([1, 512]))
        count = sum(int(np.prod(v.shape)) for v in head.trainable_variables)
        self.assertEqual(count, 2 * 513 * 512 + 513 + 513 * 18)

    def test_fixed_weights_give_expected_q_values(self):
        head = heads.DuelingHead(num_actions=3, hidden_units=1)
        head(tf.zeros([1, 2]))
        # The hidden layers of both streams have the same shape, so shapes do not identify them.
        value_hidden, advantage_hidden = head._value_hidden, head._advantage_hidden
        value_hidden.kernel.assign([[1.0], [1.0]])
        advantage_hidden.kernel.assign([[1.0], [-1.0]])
        value_hidden.bias.assign([1.0])
        _by_shape(head, 1, 1).assign([[10.0]])
        _by_shape(head, 1, 3).assign([[1.0, 2.0, 6.0]])
        _by_shape(head, 3).assign([0.0, 0.0, 3.0])
        q = head(tf.constant([[3.0, 1.0], [1.0, 3.0], [-2.0, -1.0]]))
        # Hidden units of value and advantage: (5, 2), (5, relu(-2)), (relu(-2), relu(-1)).
        # Advantages: (2, 4, 15) with mean 7, then twice (0, 0, 3) with mean 1.
        np.testing.assert_allclose(
            q, [[50 - 5, 50 - 3, 50 + 8], [50 - 1, 50 - 1, 50 + 2], [-1, -1, 2]], atol=1e-5
        )

    def test_mean_q_value_is_state_value(self):
        head = heads.DuelingHead(A, 7)
        before = head(_features(R, B))
        _by_shape(head, A).assign_add(tf.fill([A], 3.0))  # A constant for all actions.
        np.testing.assert_allclose(head(_features(R, B)), before, atol=1e-5)
        _by_shape(head, 1).assign([2.0])
        np.testing.assert_allclose(head(_features(R, B)), before + 2.0, atol=1e-5)
        _by_shape(head, 7, 1).assign(tf.zeros([7, 1]))
        np.testing.assert_allclose(
            tf.reduce_mean(head(_features(R, B)), axis=-1), np.full([R, B], 2.0), atol=1e-5
        )

    def test_every_variable_receives_gradient(self):
        head = heads.DuelingHead(A, 7)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(head(_features(R, B))[..., 0]))
        for gradient in tape.gradient(loss, head.trainable_variables):
            self.assertGreater(np.abs(gradient).max(), 0.0)


if __name__ == "__main__":
    absltest.main()

"""Tests the heads of values and advantages."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from dm_env import specs

from laser_tf.networks import heads, stochastic_dueling

R, B, F, A = 4, 6, 5, 2


def _features(*shape):
    return tf.constant(np.random.default_rng(0).normal(size=[*shape, F]), tf.float32)


def _shake(module):
    """Adds random numbers to weights and biases."""
    generator = np.random.default_rng(1)
    for variable in module.trainable_variables:
        variable.assign_add(generator.normal(size=variable.shape).astype(np.float32))


def _dense(layer, inputs):
    return inputs @ layer.kernel.numpy() + layer.bias.numpy()


class DuelingHeadTest(parameterized.TestCase):
    @parameterized.product(shape=((R, B), (B,)), dtype=(tf.float32, tf.bfloat16))
    def test_q_values_equal_equation_9(self, shape, dtype):
        head, features = heads.DuelingHead(A, 7), tf.cast(_features(*shape), dtype)
        head(features)
        _shake(head)
        q, x = head(features), tf.cast(features, tf.float32).numpy()
        self.assertEqual((q.shape, q.dtype), ([*shape, A], tf.float32))
        value = _dense(head._value, np.maximum(0, _dense(head._value_hidden, x)))
        advantage = _dense(head._advantage, np.maximum(0, _dense(head._advantage_hidden, x)))
        expected = value + advantage - advantage.mean(-1, keepdims=True)
        np.testing.assert_allclose(q, expected, rtol=1e-4, atol=1e-4)
        self.assertTrue(all(v.dtype == tf.float32 for v in head.trainable_variables))


class StochasticDuelingTest(absltest.TestCase):
    def test_q_values_equal_equation_13(self):
        rng, action = np.random.default_rng(0), specs.BoundedArray([2], np.float32, [-1, 0], [1, 4])
        network = stochastic_dueling.StochasticDuelingNetwork(action, (6,), "tanh")
        features = _features(R, B)
        values = network.values(features)
        actions, samples = (
            rng.uniform(action.minimum, action.maximum, [count, R, B, 2]).astype(np.float32)
            for count in (2, 5)
        )
        network.action_values(features, values, actions, samples)  # Creates the weights.
        _shake(network)
        values = network.values(features)
        np.testing.assert_allclose(values, _dense(network._value, features)[..., 0], rtol=1e-4)

        def advantages(actions):
            inputs = np.broadcast_to(features, [*actions.shape[:3], F])
            inputs = np.concatenate([inputs, (actions - [0, 2]) / [1, 2]], axis=-1)
            hidden = np.tanh(_dense(network._hidden._layers[0], inputs))
            return _dense(network._advantage, hidden)[..., 0]

        for used in (samples, samples[:0]):  # No samples give value plus advantage.
            q = network.action_values(features, values, actions, used)
            expected = values + advantages(actions)
            if len(used):
                expected -= advantages(used).mean(0)
            np.testing.assert_allclose(q, expected, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    absltest.main()

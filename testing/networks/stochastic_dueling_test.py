"""Tests the stochastic dueling network and the consistency of Q and V."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest
from dm_env import specs

from laser_tf.networks import stochastic_dueling

T, B, F, D, N = 3, 2, 4, 2, 5
ACTION = specs.BoundedArray([D], np.float32, [-1, 0], [1, 4])


class StochasticDuelingTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        tf.keras.utils.set_random_seed(1)
        rng = np.random.default_rng(0)
        self._network = stochastic_dueling.StochasticDuelingNetwork(ACTION, (6,), "tanh")
        self._features = tf.constant(rng.normal(size=[T, B, F]), tf.float32)
        self._values = self._network.values(self._features)
        low, high = ACTION.minimum, ACTION.maximum
        self._actions, self._samples = (
            tf.constant(rng.uniform(low, high, [count, T, B, D]), tf.float32) for count in (2, N)
        )
        self._q(self._actions, self._samples)  # Creates the weights.

    def _q(self, actions, samples):
        return self._network.action_values(self._features, self._values, actions, samples)

    def _advantages(self, actions) -> np.ndarray:
        """Computes A(x, a) in NumPy from actions scaled to [-1, 1]."""
        middle, half = np.array([0, 2]), np.array([1, 2])
        features = np.broadcast_to(self._features, [*actions.shape[:3], F])
        hidden, kernels = np.concatenate([features, (actions - middle) / half], axis=-1), {}
        for variable in (*self._network._hidden.variables, *self._network._advantage.variables):
            kernels[len(kernels)] = variable.numpy()
        hidden = np.tanh(hidden @ kernels[0] + kernels[1])
        return (hidden @ kernels[2] + kernels[3])[..., 0]

    def test_q_values_equal_equation_13(self):
        expected = (
            self._values
            + self._advantages(self._actions.numpy())
            - self._advantages(self._samples.numpy()).mean(0)
        )
        np.testing.assert_allclose(self._q(self._actions, self._samples), expected, atol=1e-5)

    def test_mean_over_samples_is_state_value(self):
        mean = tf.reduce_mean(self._q(self._samples, self._samples), axis=0)
        np.testing.assert_allclose(mean, self._values, atol=1e-5)

    def test_no_samples_gives_value_plus_advantage(self):
        expected = self._values + self._advantages(self._actions.numpy())
        np.testing.assert_allclose(self._q(self._actions, self._samples[:0]), expected, atol=1e-5)


if __name__ == "__main__":
    absltest.main()

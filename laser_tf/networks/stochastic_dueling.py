"""The stochastic dueling network (ACER, section 5.1): V and Q of continuous actions, consistent."""

from collections.abc import Sequence

import tensorflow as tf
from dm_env import specs

from laser_tf.networks import action_encoding, heads, torsos


class StochasticDuelingNetwork(tf.Module):
    """V(x), and Q~(x, a) = V(x) + A(x, a) - 1/n sum_i A(x, u_i), u_i ~ pi(.|x)   (equation 13).

    The mean of Q~ over actions of pi is V. A is a small network over the features and the action.
    """

    def __init__(self, action: specs.BoundedArray, units: Sequence[int], activation: str):
        """Creates the heads.

        Args:
          action: float32 [D] with finite bounds.
          units: of each hidden layer of A.
          activation: of these, a key of `torsos.ACTIVATIONS`.
        """
        super().__init__()
        self._action = action
        self._value = heads.dense(1)
        self._hidden = torsos.MLP(units, activation, "float32")
        self._advantage = heads.dense(1)

    def values(self, features: tf.Tensor) -> tf.Tensor:
        """V: float32 [..., F] -> [...]."""
        return self._value(features)[..., 0]

    def action_values(
        self, features: tf.Tensor, values: tf.Tensor, actions: tf.Tensor, samples: tf.Tensor
    ) -> tf.Tensor:
        """Q~ of k actions in each state, all compared with the same n samples.

        Args:
          features: float32 [..., F].
          values: float32 [...], V of them.
          actions: float32 [k, ..., D], within the bounds.
          samples: float32 [n, ..., D], drawn from the policy; n = 0: Q = V + A, which nothing holds
            to be consistent with V.

        Returns:
          float32 [k, ...].
        """
        count = actions.shape[0]
        advantages = self._advantages(features, tf.concat([actions, samples], axis=0))
        action_values = values + advantages[:count]
        if samples.shape[0]:
            action_values -= tf.reduce_mean(advantages[count:], axis=0)
        return action_values

    def _advantages(self, features: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """[..., F], [m, ..., D] -> [m, ...]."""
        actions = action_encoding.encode(self._action, actions)
        features = tf.broadcast_to(
            features, tf.concat([tf.shape(actions)[:-1], [features.shape[-1]]], axis=0)
        )
        inputs = tf.concat([features, actions], axis=-1)
        shape = tf.shape(inputs)[:-1]
        flat = tf.reshape(inputs, [-1, inputs.shape[-1]])
        return tf.reshape(self._advantage(self._hidden(flat)), shape)

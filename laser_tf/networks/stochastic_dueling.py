"""Stochastic dueling network for continuous actions (ACER, section 5.1)."""

from collections.abc import Sequence

import tensorflow as tf
from dm_env import specs

from laser_tf.networks import heads, torsos, trunk


class StochasticDuelingNetwork(tf.Module):
    """Computes consistent estimates of V(x) and Q~(x, a)   (equation 13).

        Q~(x, a) = V(x) + A(x, a) - 1/n sum_i A(x, u_i),   u_i ~ pi(.|x)

    The expectation of Q~ over actions of pi is V. A is a small network over features and action.
    """

    def __init__(self, action: specs.BoundedArray, units: Sequence[int], activation: str):
        super().__init__()
        self._action = action
        self._value = heads.dense(1)
        self._hidden = torsos.MLP(units, activation, "float32")
        self._advantage = heads.dense(1)

    def values(self, features: tf.Tensor) -> tf.Tensor:
        """Computes V, float32 [...], from features [..., F]."""
        return self._value(features)[..., 0]

    def action_values(
        self, features: tf.Tensor, values: tf.Tensor, actions: tf.Tensor, samples: tf.Tensor
    ) -> tf.Tensor:
        """Computes Q~ of k actions in each state with the same n samples, float32 [k, ...].

        Args:
          features: float32 [..., F].
          values: V of the features, float32 [...].
          actions: Actions within the bounds, float32 [k, ..., D].
          samples: Actions sampled from the policy, float32 [n, ..., D]. With n = 0 the result is
            V + A, which need not be consistent with V.
        """
        count = actions.shape[0]
        advantages = self._advantages(features, tf.concat([actions, samples], axis=0))
        action_values = values + advantages[:count]
        if samples.shape[0]:
            action_values -= tf.reduce_mean(advantages[count:], axis=0)
        return action_values

    def _advantages(self, features: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
        """Computes A, float32 [m, ...], from features [..., F] and actions [m, ..., D]."""
        actions = trunk.encode_action(self._action, actions)
        features = tf.broadcast_to(
            features, tf.concat([tf.shape(actions)[:-1], [features.shape[-1]]], axis=0)
        )
        inputs = tf.concat([features, actions], axis=-1)
        shape = tf.shape(inputs)[:-1]
        flat = tf.reshape(inputs, [-1, inputs.shape[-1]])
        return tf.reshape(self._advantage(self._hidden(flat)), shape)

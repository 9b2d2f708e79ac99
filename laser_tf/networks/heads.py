"""Heads that map features of a torso or core to float32 outputs."""

import tensorflow as tf

from laser_tf.networks import torsos


def dense(units: int, scale: float = 1.0) -> tf.keras.layers.Dense:
    """Creates a linear layer with initial weights of variance `scale` / fan-in."""
    return torsos.dense(units, "float32", scale)


class DuelingHead(tf.Module):
    """Q-values from a state-value stream and an advantage stream.

    Each stream is a hidden ReLU layer followed by a linear layer (Wang et al. 2016, "Dueling
    Network Architectures for Deep Reinforcement Learning"; R2D2, appendix).
    """

    def __init__(self, num_actions: int, hidden_units: int):
        super().__init__()
        # A ReLU halves the variance, so the layer before it doubles the variance (He et al. 2015).
        self._value_hidden = dense(hidden_units, 2.0)
        self._value = dense(1)
        self._advantage_hidden = dense(hidden_units, 2.0)
        self._advantage = dense(num_actions)

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        """Computes Q-values, float32 [..., A], from features [..., F].

        q(x, a) = V(x) + A(x, a) - mean_b A(x, b)   (equation 9)
        """
        features = tf.cast(features, tf.float32)
        value = self._value(tf.nn.relu(self._value_hidden(features)))
        advantage = self._advantage(tf.nn.relu(self._advantage_hidden(features)))
        return value + advantage - tf.reduce_mean(advantage, axis=-1, keepdims=True)


class ConcatenatedReLUHead(tf.Module):
    """Hidden layer with a concatenated ReLU, followed by a linear layer.

    Reactor uses this head for each of its streams (Gruslys et al. 2018, table 3). `output_scale` /
    fan-in is the variance of the initial weights of the linear layer.
    """

    def __init__(self, hidden_units: int, outputs: int, output_scale: float = 1.0):
        super().__init__()
        self._hidden = dense(hidden_units, 2.0)
        self._outputs = dense(outputs, output_scale)

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        """Maps features [..., F] to float32 [..., outputs]."""
        return self._outputs(tf.nn.crelu(self._hidden(tf.cast(features, tf.float32))))


class CategoricalDuelingHead(tf.Module):
    """Dueling head of distributions with N bins per action (Reactor, section 6.5; Rainbow).

    The advantage stream is initialised close to zero. Larger random weights would separate action
    values by more than most returns, and similarly in all states. The policy would collapse to a
    single action before the critic had learned anything.
    """

    def __init__(self, num_actions: int, bins: int, hidden_units: int):
        super().__init__()
        self._num_actions = num_actions
        self._value = ConcatenatedReLUHead(hidden_units, bins)
        self._advantage = ConcatenatedReLUHead(hidden_units, num_actions * bins, 1e-4)

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        """Computes logits, float32 [..., A, N], from features [..., F].

        l_i(x, a) = l_i(x) + l_i^a(x) - mean_b l_i^b(x),    q_i(x, a) = softmax_i l_i(x, a)
        """
        value = self._value(features)[..., None, :]
        advantage = self._advantage(features)
        per_action = [self._num_actions, value.shape[-1]]
        advantage = tf.reshape(advantage, tf.concat([tf.shape(features)[:-1], per_action], axis=0))
        return value + advantage - tf.reduce_mean(advantage, axis=-2, keepdims=True)

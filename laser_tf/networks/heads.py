"""Heads: from a torso's or a core's features to what an agent computes with, always in float32."""

import tensorflow as tf


def dense(units: int, scale: float = 1.0) -> tf.keras.layers.Dense:
    """A linear layer whose weights have the variance `scale` / fan-in."""
    initializer = tf.keras.initializers.VarianceScaling(scale, "fan_in", "truncated_normal")
    return tf.keras.layers.Dense(units, kernel_initializer=initializer, dtype="float32")


class DuelingHead(tf.Module):
    """Action values of two streams: a state's value, and its actions' advantages.

    Each stream is a hidden layer with ReLU and a linear one (Wang et al. 2016, "Dueling Network
    Architectures for Deep Reinforcement Learning"; R2D2, appendix).
    """

    def __init__(self, num_actions: int, hidden_units: int = 512):
        """Creates the head; its weights appear at the first call.

        Args:
          num_actions: A.
          hidden_units: of each stream.
        """
        super().__init__()
        # Twice the variance before a ReLU, which halves it (He et al. 2015).
        self._value_hidden = dense(hidden_units, 2.0)
        self._value = dense(1)
        self._advantage_hidden = dense(hidden_units, 2.0)
        self._advantage = dense(num_actions)

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        """Features [..., F] -> q float32 [..., A].

        q(x, a) = V(x) + A(x, a) - mean_b A(x, b)   (equation 9)
        """
        features = tf.cast(features, tf.float32)
        value = self._value(tf.nn.relu(self._value_hidden(features)))
        advantage = self._advantage(tf.nn.relu(self._advantage_hidden(features)))
        return value + advantage - tf.reduce_mean(advantage, axis=-1, keepdims=True)


class ConcatenatedReLUHead(tf.Module):
    """A hidden layer with a concatenated ReLU, relu(x) and relu(-x) side by side, and a linear one.

    Reactor's streams (Gruslys et al. 2018, table 3).
    """

    def __init__(self, hidden_units: int, outputs: int, output_scale: float = 1.0):
        """Creates the head; its weights appear at the first call.

        Args:
          hidden_units: before the concatenated ReLU.
          outputs: of the linear layer.
          output_scale: variance of its weights, times fan-in.
        """
        super().__init__()
        self._hidden = dense(hidden_units, 2.0)
        self._outputs = dense(outputs, output_scale)

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        """Features [..., F] -> float32 [..., outputs]."""
        return self._outputs(tf.nn.crelu(self._hidden(tf.cast(features, tf.float32))))


class CategoricalDuelingHead(tf.Module):
    """Distributions of action values, dueling on each bin (Reactor, section 6.5; Rainbow).

    A fresh head values all actions alike. The differences that random weights make are much the
    same in all states, and larger than those of most returns: a policy that learns from them turns
    to one action everywhere before the critic has learned any.
    """

    def __init__(self, num_actions: int, bins: int, hidden_units: int):
        """Creates the head; its weights appear at the first call.

        Args:
          num_actions: A.
          bins: N.
          hidden_units: of each stream, before its concatenated ReLU.
        """
        super().__init__()
        self._num_actions = num_actions
        self._value = ConcatenatedReLUHead(hidden_units, bins)
        self._advantage = ConcatenatedReLUHead(hidden_units, num_actions * bins, 1e-4)

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        """Features [..., F] -> logits float32 [..., A, N].

        l_i(x, a) = l_i(x) + l_i^a(x) - mean_b l_i^b(x),    q_i(x, a) = softmax_i l_i(x, a)
        """
        value = self._value(features)[..., None, :]
        advantage = self._advantage(features)
        per_action = [self._num_actions, value.shape[-1]]
        advantage = tf.reshape(advantage, tf.concat([tf.shape(features)[:-1], per_action], axis=0))
        return value + advantage - tf.reduce_mean(advantage, axis=-2, keepdims=True)

"""Heads: from a torso's or a core's features to what an agent computes with, always in float32."""

import tensorflow as tf


def _dense(units: int, scale: float = 1.0) -> tf.keras.layers.Dense:
    initializer = tf.keras.initializers.VarianceScaling(scale, "fan_in", "truncated_normal")
    return tf.keras.layers.Dense(units, kernel_initializer=initializer, dtype="float32")


class PolicyValueHead(tf.Module):
    """A linear policy that all tasks share and a linear value of each task.

    Values may be learnt at unit scale by PopArt (Hessel et al. 2019). The head only holds the
    numbers; what they mean and how they move is `laser_tf.ops.popart`: an agent makes
    `popart.Statistics(*head.moments)` of them and hands the outcome to `assign`.
    """

    def __init__(self, num_actions: int, num_tasks: int):
        super().__init__()
        self._policy = _dense(num_actions)
        self._value = _dense(num_tasks)
        # Normalisation starts as the identity. Not trainable, yet part of every checkpoint.
        self._moments = tuple(
            tf.Variable(initial([num_tasks]), trainable=False, name=name, dtype=tf.float32)
            for name, initial in (("mean", tf.zeros), ("variance", tf.ones))
        )

    def logits(self, features: tf.Tensor) -> tf.Tensor:
        """The policy of features [..., F]: float32 [..., A]."""
        return self._policy(tf.cast(features, tf.float32))

    def normalised_values(self, features: tf.Tensor, tasks: tf.Tensor) -> tf.Tensor:
        """The values of features [..., B, F] in the tasks int32 [B] of the columns: [..., B]."""
        values = self._value(tf.cast(features, tf.float32))
        # Each column has one task: a sum over one entry, which is cheap to differentiate.
        own = tf.one_hot(tasks, values.shape[-1], True, False, dtype=tf.bool)
        return tf.reduce_sum(tf.where(own, values, 0.0), axis=-1)

    @property
    def moments(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Mean and variance of each task's targets, float32 [K], as of now: `assign` moves on."""
        return tuple(tf.identity(variable) for variable in self._moments)

    @property
    def value_layer(self) -> tuple[tf.Variable, tf.Variable]:
        """The kernel [F, K] and the bias [K] of the values; after the first call."""
        return self._value.kernel, self._value.bias

    def assign(
        self, moments: tuple[tf.Tensor, tf.Tensor], value_layer: tuple[tf.Tensor, tf.Tensor]
    ) -> None:
        """Takes new moments together with the value layer that belongs to them."""
        for variable, value in zip(
            (*self._moments, *self.value_layer), (*moments, *value_layer), strict=True
        ):
            variable.assign(value)


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
        self._value_hidden = _dense(hidden_units, 2.0)
        self._value = _dense(1)
        self._advantage_hidden = _dense(hidden_units, 2.0)
        self._advantage = _dense(num_actions)

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        """Features [..., F] -> q float32 [..., A].

        q(x, a) = V(x) + A(x, a) - mean_b A(x, b)   (equation 9)
        """
        features = tf.cast(features, tf.float32)
        value = self._value(tf.nn.relu(self._value_hidden(features)))
        advantage = self._advantage(tf.nn.relu(self._advantage_hidden(features)))
        return value + advantage - tf.reduce_mean(advantage, axis=-1, keepdims=True)

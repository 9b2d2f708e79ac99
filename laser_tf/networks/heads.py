"""Heads: from a torso's or a core's features to what an agent computes with, always in float32."""

import tensorflow as tf


def _dense(units: int) -> tf.keras.layers.Dense:
    initializer = tf.keras.initializers.VarianceScaling(1.0, "fan_in", "truncated_normal")
    return tf.keras.layers.Dense(units, kernel_initializer=initializer, dtype="float32")


class PolicyValueHead(tf.Module):
    """A linear policy and a linear value on shared features."""

    def __init__(self, num_actions: int):
        super().__init__()
        self._policy = _dense(num_actions)
        self._value = _dense(1)

    def __call__(self, features: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Features [..., F] -> (logits float32 [..., A], values float32 [...])."""
        features = tf.cast(features, tf.float32)
        return self._policy(features), tf.squeeze(self._value(features), axis=-1)

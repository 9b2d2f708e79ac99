"""Encodes actions as network inputs."""

import tensorflow as tf
from dm_env import specs


def encode(spec: specs.BoundedArray, action: tf.Tensor) -> tf.Tensor:
    """Encodes discrete actions as one-hot vectors and scales continuous ones to [-1, 1].

    Args:
      spec: A `DiscreteArray` of A actions, or float32 [D] with finite bounds.
      action: int32 [...] or float32 [..., D].

    Returns:
      float32 [..., A] or [..., D].
    """
    if isinstance(spec, specs.DiscreteArray):
        return tf.one_hot(action, spec.num_values)
    low, high = spec.minimum, spec.maximum
    # Equal bounds leave a single action, which is encoded as 0.
    return tf.math.divide_no_nan(2 * action - (high + low), high - low)

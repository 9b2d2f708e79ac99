"""Actions as a network's inputs."""

import tensorflow as tf
from dm_env import specs


def encode(spec: specs.BoundedArray, action: tf.Tensor) -> tf.Tensor:
    """One-hot, or scaled so that the bounds are -1 and 1.

    Args:
      spec: a `DiscreteArray`, or float32 [D] with finite bounds.
      action: int32 [...] or float32 [..., D].

    Returns:
      float32 [..., A] or [..., D].
    """
    if isinstance(spec, specs.DiscreteArray):
        return tf.one_hot(action, spec.num_values)
    low, high = spec.minimum, spec.maximum
    # An action that has no choice is 0.
    return tf.math.divide_no_nan(2 * action - (high + low), high - low)

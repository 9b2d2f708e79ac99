"""Vectors at unit scale: normalisation by running moments of what the learner has seen."""

import tensorflow as tf

from laser_tf.networks import running_moments

_LARGEST = 10.0  # of a normalised entry: a rare spike must not blow the network up
_LEAST_VARIANCE = 1e-8


class VectorNormaliser(running_moments.RunningMoments):
    """Subtracts the mean and divides by the standard deviation of each entry; at first neither."""

    def __call__(self, vectors: tf.Tensor) -> tf.Tensor:
        """float32 [..., D] -> float32 [..., D], from -10 to 10."""
        scaled = (vectors - self._mean) * tf.math.rsqrt(self._variance + _LEAST_VARIANCE)
        return tf.clip_by_value(scaled, -_LARGEST, _LARGEST)

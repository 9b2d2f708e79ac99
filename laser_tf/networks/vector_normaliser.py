"""Normalises each entry of vectors to mean 0 and standard deviation 1."""

import tensorflow as tf

from laser_tf.networks import running_moments

_MAX_NORMALISED = 10.0  # Limits the effect of rare spikes on the network.
_VARIANCE_EPSILON = 1e-8


class VectorNormaliser(running_moments.RunningMoments):
    """Normalises vectors by running moments; fresh moments leave vectors unchanged."""

    def __call__(self, vectors: tf.Tensor) -> tf.Tensor:
        """Normalises vectors, float32 [..., D], to values in [-10, 10]."""
        scaled = (vectors - self._mean) * tf.math.rsqrt(self._variance + _VARIANCE_EPSILON)
        return tf.clip_by_value(scaled, -_MAX_NORMALISED, _MAX_NORMALISED)

"""Gaussian with a fixed standard deviation (ACER, sections 5.2 and 6)."""

import tensorflow as tf
from dm_env import specs

from laser_tf.distributions import gaussian, policy_statistics


class FixedGaussian(gaussian.Gaussian):
    """Clipped Gaussian with a learned mean. Its entropy is constant."""

    def __init__(self, action: specs.BoundedArray, std: float):
        """Creates the family.

        Args:
          action: Action spec, float32 [D] with finite bounds.
          std: Standard deviation in half ranges: 1 is the distance from the middle to a bound.
        """
        super().__init__(action, squashed=False)
        self.output_size = action.shape[0]
        self._std = std

    def parameters(self, outputs: tf.Tensor) -> gaussian.Parameters:
        """Returns the outputs as means, with the fixed standard deviation."""
        return gaussian.Parameters(outputs, tf.fill(tf.shape(outputs), self._std))


class Means(policy_statistics.PolicyStatistics):
    """Statistics of a Gaussian with fixed standard deviation: phi is the latent mean."""

    def compute(self, parameters: gaussian.Parameters) -> tf.Tensor:
        """See `PolicyStatistics`; S is D."""
        return parameters.mean

    def score(
        self, parameters: gaussian.Parameters, action: tf.Tensor, latent: tf.Tensor
    ) -> tf.Tensor:
        """Returns (a - phi) / std^2."""
        return (latent - parameters.mean) / tf.square(parameters.std)

    def divergence_gradient(
        self, average: gaussian.Parameters, parameters: gaussian.Parameters
    ) -> tf.Tensor:
        """Returns (phi - phi_average) / std^2."""
        return (parameters.mean - average.mean) / tf.square(parameters.std)

    def entropy_gradient(self, parameters: gaussian.Parameters) -> tf.Tensor:
        """Returns 0, because the entropy depends only on the standard deviation."""
        return tf.zeros_like(parameters.mean)

"""Continuous actions of a fixed deviation (ACER, sections 5.2 and 6)."""

import tensorflow as tf
from dm_env import specs

from laser_tf.distributions import gaussian, policy_statistics


class FixedGaussian(gaussian.Gaussian):
    """A clipped Gaussian whose mean alone is the network's; its entropy is constant."""

    def __init__(self, action: specs.BoundedArray, std: float):
        """Creates the family.

        Args:
          action: float32 [D] with finite bounds.
          std: of a latent action, in half ranges: 1 is from the middle to a bound.
        """
        super().__init__(action, squashed=False, initial_std=std)
        self.output_size = action.shape[0]
        self._std = std

    def parameters(self, outputs: tf.Tensor) -> gaussian.Parameters:
        """The outputs are the means."""
        return gaussian.Parameters(outputs, tf.fill(tf.shape(outputs), self._std))


class Means(policy_statistics.PolicyStatistics):
    """Of a Gaussian policy of fixed deviation: phi is the mean of its latent action."""

    def of(self, parameters: gaussian.Parameters) -> tf.Tensor:
        """See `PolicyStatistics`; S is D."""
        return parameters.mean

    def score(
        self, parameters: gaussian.Parameters, action: tf.Tensor, latent: tf.Tensor
    ) -> tf.Tensor:
        """(a - phi) / std^2."""
        return (latent - parameters.mean) / tf.square(parameters.std)

    def divergence_gradient(
        self, average: gaussian.Parameters, parameters: gaussian.Parameters
    ) -> tf.Tensor:
        """(phi - phi_average) / std^2."""
        return (parameters.mean - average.mean) / tf.square(parameters.std)

    def entropy_gradient(self, parameters: gaussian.Parameters) -> tf.Tensor:
        """0: the entropy is that of the deviation alone."""
        return tf.zeros_like(parameters.mean)

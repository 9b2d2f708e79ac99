"""Product of the distributions of the integers and of the floats of an action.

The parts are independent. Log-probabilities, log-ratios, entropies and KL divergences are therefore
sums over the parts.
"""

import numpy as np
import tensorflow as tf

from laser_tf import types
from laser_tf.distributions import base, policy_statistics


class Product(base.Distribution):
    """Product of two families. Parameters are pairs, latent actions those of the floats.

    Actions are vectors float32 [..., D], see `types.ProductSpec`.
    """

    def __init__(
        self, action: types.ProductSpec, integers: base.Distribution, floats: base.Distribution
    ):
        """Creates the family from those of the integers and the floats of an action spec."""
        self.output_size = integers.output_size + floats.output_size
        # One layer computes all outputs, and Gaussians need small initial weights.
        self.output_scale = floats.output_scale
        self._action = action
        self._integers, self._floats = integers, floats

    def parameters(self, outputs: tf.Tensor) -> tuple:
        """See `base.Distribution`."""
        sizes = [self._integers.output_size, self._floats.output_size]
        integers, floats = tf.split(outputs, sizes, axis=-1)
        return self._integers.parameters(integers), self._floats.parameters(floats)

    def sample(self, parameters: tuple, seed: tf.Tensor) -> base.ActionSample:
        """Samples actions float32 [B, D]."""
        seeds = tf.unstack(tf.random.experimental.stateless_split(seed, 2))
        integers = self._integers.sample(parameters[0], seeds[0]).action
        floats, latent = self._floats.sample(parameters[1], seeds[1])
        return base.ActionSample(self._join(integers, floats), latent)

    def mode(self, parameters: tuple) -> tf.Tensor:
        """Returns the most probable integers, and the floats of the mean."""
        return self._join(self._integers.mode(parameters[0]), self._floats.mode(parameters[1]))

    def log_prob(self, parameters: tuple, action: tf.Tensor, latent: tf.Tensor) -> tf.Tensor:
        """See `base.Distribution`."""
        integers, floats = split(self._action, action)
        log_prob = self._integers.log_prob(parameters[0], integers, ())
        return log_prob + self._floats.log_prob(parameters[1], floats, latent)

    def entropy(self, parameters: tuple) -> tf.Tensor:
        """See `base.Distribution`."""
        return self._integers.entropy(parameters[0]) + self._floats.entropy(parameters[1])

    def kl_divergence(self, parameters_p: tuple, parameters_q: tuple) -> tf.Tensor:
        """See `base.Distribution`."""
        divergence = self._integers.kl_divergence(parameters_p[0], parameters_q[0])
        return divergence + self._floats.kl_divergence(parameters_p[1], parameters_q[1])

    def log_importance_ratio(
        self, target: tuple, behaviour: tuple, action: tf.Tensor, latent: tf.Tensor
    ) -> tf.Tensor:
        """See `base.Distribution`."""
        integers, floats = split(self._action, action)
        ratio = self._integers.log_importance_ratio(target[0], behaviour[0], integers, ())
        return ratio + self._floats.log_importance_ratio(target[1], behaviour[1], floats, latent)

    def _join(self, integers: tf.Tensor, floats: tf.Tensor) -> tf.Tensor:
        """Joins int32 [..., K] and float32 [..., D - K] to float32 [..., D]."""
        columns = np.argsort([*self._action.integers, *self._action.floats])
        joined = tf.concat([tf.cast(integers, tf.float32), floats], axis=-1)
        return tf.gather(joined, columns, axis=-1)


class ProductStatistics(policy_statistics.PolicyStatistics):
    """Statistics phi of the integers, then those of the floats."""

    def __init__(
        self,
        action: types.ProductSpec,
        integers: policy_statistics.PolicyStatistics,
        floats: policy_statistics.PolicyStatistics,
    ):
        """Creates the statistics from those of the integers and the floats of an action spec."""
        self._action = action
        self._integers, self._floats = integers, floats

    def compute(self, parameters: tuple) -> tf.Tensor:
        """See `PolicyStatistics`."""
        phis = self._integers.compute(parameters[0]), self._floats.compute(parameters[1])
        return tf.concat(phis, axis=-1)

    def score(self, parameters: tuple, action: tf.Tensor, latent: tf.Tensor) -> tf.Tensor:
        """See `PolicyStatistics`."""
        integers, floats = split(self._action, action)
        score = self._integers.score(parameters[0], integers, ())
        return tf.concat([score, self._floats.score(parameters[1], floats, latent)], axis=-1)

    def divergence_gradient(self, average: tuple, parameters: tuple) -> tf.Tensor:
        """See `PolicyStatistics`."""
        integers = self._integers.divergence_gradient(average[0], parameters[0])
        floats = self._floats.divergence_gradient(average[1], parameters[1])
        return tf.concat([integers, floats], axis=-1)

    def entropy_gradient(self, parameters: tuple) -> tf.Tensor:
        """See `PolicyStatistics`."""
        gradient = self._integers.entropy_gradient(parameters[0])
        return tf.concat([gradient, self._floats.entropy_gradient(parameters[1])], axis=-1)


def split(spec: types.ProductSpec, action: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Splits actions [..., D] into integers int32 [..., K] and floats float32 [..., D - K]."""
    integers = tf.cast(tf.gather(action, spec.integers, axis=-1), tf.int32)
    return integers, tf.gather(action, spec.floats, axis=-1)

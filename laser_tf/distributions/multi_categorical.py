"""Several independent integers, computed together: one graph for any number of integers."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from laser_tf.distributions import base, policy_statistics
from laser_tf.ops import action_mask, categorical


class MultiCategorical(base.Distribution):
    """Product of K categorical distributions; actions are int32 [..., K].

    Parameters are the logits of all integers one after the other, float32 [..., P].
    """

    def __init__(self, num_values: Sequence[int]):
        """Creates the family from the number of values of each integer."""
        self.output_size = sum(num_values)
        exists = np.arange(max(num_values)) < np.array(num_values)[:, None]  # [K, A]
        self._logits = np.full(exists.shape, self.output_size)  # P is the index of the padding
        self._logits[exists] = np.arange(self.output_size)
        self._values = np.flatnonzero(exists)

    def parameters(self, outputs: tf.Tensor) -> tf.Tensor:
        """Returns the outputs, which are the logits."""
        return outputs

    def sample(self, parameters: tf.Tensor, seed: tf.Tensor) -> base.ActionSample:
        """Samples actions int32 [B, K] from logits [B, P]."""
        integers, values = self._logits.shape
        logits = tf.reshape(self.pad(parameters), [-1, values])
        sampled = tf.random.stateless_categorical(logits, 1, seed, dtype=tf.int32)
        return base.ActionSample(tf.reshape(sampled, [-1, integers]))

    def mode(self, parameters: tf.Tensor) -> tf.Tensor:
        """Returns the value of each integer with the largest logit, int32 [..., K]."""
        return tf.argmax(self.pad(parameters), axis=-1, output_type=tf.int32)

    def log_prob(self, parameters: tf.Tensor, action: tf.Tensor, latent: tuple = ()) -> tf.Tensor:
        """See `base.Distribution`; `latent` is not used."""
        return tf.reduce_sum(categorical.log_probability(self.pad(parameters), action), axis=-1)

    def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
        """See `base.Distribution`; at least 0."""
        return tf.reduce_sum(categorical.entropy(self.pad(parameters)), axis=-1)

    def kl_divergence(self, parameters_p: tf.Tensor, parameters_q: tf.Tensor) -> tf.Tensor:
        """See `base.Distribution`."""
        divergences = categorical.kl_divergence(self.pad(parameters_p), self.pad(parameters_q))
        return tf.reduce_sum(divergences, axis=-1)

    def log_importance_ratio(
        self, target: tf.Tensor, behaviour: tf.Tensor, action: tf.Tensor, latent: tuple = ()
    ) -> tf.Tensor:
        """See `base.Distribution`."""
        logits = self.pad(target), self.pad(behaviour)
        return tf.reduce_sum(categorical.log_importance_ratio(*logits, action), axis=-1)

    def pad(self, parameters: tf.Tensor) -> tf.Tensor:
        """Arranges logits [..., P] as [..., K, A]; values that do not exist are forbidden."""
        paddings = [*[[0, 0]] * (len(parameters.shape) - 1), [0, 1]]
        padded = tf.pad(parameters, paddings, constant_values=action_mask.FORBIDDEN)
        return tf.gather(padded, self._logits, axis=-1)

    def flatten(self, padded: tf.Tensor) -> tf.Tensor:
        """Arranges [..., K, A] as [..., P], without the padding."""
        shape = tf.concat([tf.shape(padded)[:-2], [self._logits.size]], axis=0)
        return tf.gather(tf.reshape(padded, shape), self._values, axis=-1)


class MultiStatistics(policy_statistics.PolicyStatistics):
    """Statistics phi of each integer of a `MultiCategorical`, one after the other; S is P."""

    def __init__(self, family: MultiCategorical, each: policy_statistics.PolicyStatistics):
        """Creates the statistics from those of one integer."""
        self._family = family
        self._each = each

    def compute(self, parameters: tf.Tensor) -> tf.Tensor:
        """See `PolicyStatistics`."""
        return self._family.flatten(self._each.compute(self._family.pad(parameters)))

    def score(self, parameters: tf.Tensor, action: tf.Tensor, latent: tuple = ()) -> tf.Tensor:
        """See `PolicyStatistics`."""
        return self._family.flatten(self._each.score(self._family.pad(parameters), action, ()))

    def divergence_gradient(self, average: tf.Tensor, parameters: tf.Tensor) -> tf.Tensor:
        """See `PolicyStatistics`."""
        logits = self._family.pad(average), self._family.pad(parameters)
        return self._family.flatten(self._each.divergence_gradient(*logits))

    def entropy_gradient(self, parameters: tf.Tensor) -> tf.Tensor:
        """See `PolicyStatistics`."""
        return self._family.flatten(self._each.entropy_gradient(self._family.pad(parameters)))

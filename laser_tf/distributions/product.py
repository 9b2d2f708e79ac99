"""Distribution of an action of several independent parts.

The probability of an action is the product of the probabilities of its parts. Log-probabilities,
log-ratios, entropies and KL divergences are therefore sums over the parts.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from laser_tf import types
from laser_tf.distributions import base, policy_statistics


class Product(base.Distribution):
    """Product of distributions. Parameters and latent actions are tuples with an entry per part.

    Actions are vectors [..., D] of the dtype of the action spec.
    """

    def __init__(self, action: types.ProductSpec, parts: Sequence[base.Distribution]):
        """Creates the family from the distribution of each part of an action spec."""
        self.output_size = sum(part.output_size for part in parts)
        # One layer computes the outputs of all parts, and Gaussians need small initial weights.
        self.output_scale = min(part.output_scale for part in parts)
        self._action = action
        self._parts = parts

    def parameters(self, outputs: tf.Tensor) -> tuple:
        """See `base.Distribution`."""
        sizes = [part.output_size for part in self._parts]
        return tuple(_call(self._parts, "parameters", tf.split(outputs, sizes, axis=-1)))

    def sample(self, parameters: tuple, seed: tf.Tensor) -> base.ActionSample:
        """See `base.Distribution`; each part has a separate seed."""
        seeds = tf.unstack(tf.random.experimental.stateless_split(seed, len(self._parts)))
        samples = _call(self._parts, "sample", parameters, seeds)
        actions = self._join([sample.action for sample in samples])
        return base.ActionSample(actions, tuple(sample.latent for sample in samples))

    def mode(self, parameters: tuple) -> tf.Tensor:
        """Returns the mode of each part."""
        return self._join(_call(self._parts, "mode", parameters))

    def log_prob(self, parameters: tuple, action: tf.Tensor, latent: tuple) -> tf.Tensor:
        """See `base.Distribution`."""
        actions = _split(self._action, action)
        return tf.add_n(_call(self._parts, "log_prob", parameters, actions, latent))

    def entropy(self, parameters: tuple) -> tf.Tensor:
        """See `base.Distribution`."""
        return tf.add_n(_call(self._parts, "entropy", parameters))

    def kl_divergence(self, parameters_p: tuple, parameters_q: tuple) -> tf.Tensor:
        """See `base.Distribution`."""
        return tf.add_n(_call(self._parts, "kl_divergence", parameters_p, parameters_q))

    def log_importance_ratio(
        self, target: tuple, behaviour: tuple, action: tf.Tensor, latent: tuple
    ) -> tf.Tensor:
        """See `base.Distribution`."""
        actions = _split(self._action, action)
        ratios = _call(self._parts, "log_importance_ratio", target, behaviour, actions, latent)
        return tf.add_n(ratios)

    def _join(self, actions: Sequence[tf.Tensor]) -> tf.Tensor:
        """Concatenates the actions of all parts, [...] or [..., D_i], to [..., D]."""
        vectors = [
            value if part.shape else value[..., None]
            for part, value in zip(self._action.parts, actions, strict=True)
        ]
        return tf.concat([tf.cast(vector, self._action.dtype) for vector in vectors], axis=-1)


class ProductStatistics(policy_statistics.PolicyStatistics):
    """Statistics phi of all parts, one after the other."""

    def __init__(
        self, action: types.ProductSpec, parts: Sequence[policy_statistics.PolicyStatistics]
    ):
        """Creates the statistics from those of each part of an action spec."""
        self._action = action
        self._parts = parts

    def compute(self, parameters: tuple) -> tf.Tensor:
        """See `PolicyStatistics`; S is the sum over the parts."""
        return tf.concat(_call(self._parts, "compute", parameters), axis=-1)

    def score(self, parameters: tuple, action: tf.Tensor, latent: tuple) -> tf.Tensor:
        """See `PolicyStatistics`."""
        actions = _split(self._action, action)
        return tf.concat(_call(self._parts, "score", parameters, actions, latent), axis=-1)

    def divergence_gradient(self, average: tuple, parameters: tuple) -> tf.Tensor:
        """See `PolicyStatistics`."""
        return tf.concat(_call(self._parts, "divergence_gradient", average, parameters), axis=-1)

    def entropy_gradient(self, parameters: tuple) -> tf.Tensor:
        """See `PolicyStatistics`."""
        return tf.concat(_call(self._parts, "entropy_gradient", parameters), axis=-1)


def _call(parts: Sequence[Any], method: str, *arguments: Sequence[Any]) -> list[Any]:
    """Calls a method of each part with the part's arguments."""
    return [getattr(part, method)(*own) for part, *own in zip(parts, *arguments, strict=True)]


def _split(spec: types.ProductSpec, action: tf.Tensor) -> list[tf.Tensor]:
    """Splits actions [..., D] into the actions of the parts, each of the dtype of its part."""
    actions = zip(spec.parts, spec.split(action), strict=True)
    return [tf.cast(value, part.dtype) for part, value in actions]

"""Continuous actions: diagonal Gaussians whose draws are squashed or clipped into the bounds.

Densities are taken of what was drawn before that, the latent action: in the ratio pi / mu and in
KL(pi || mu) the Jacobian of a squashing cancels, and a clipped action has no density at all. The
entropy, too, is the latent Gaussian's: the squashed one's has no closed form.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from dm_env import specs
from tensorflow_probability import distributions as tfd

from laser_tf.distributions import base

_LEAST_STD = 1e-3  # of a latent action, whose range of interest is [-1, 1]


class Parameters(NamedTuple):
    """Of the latent Gaussian, float32 [..., D] each."""

    mean: tf.Tensor
    std: tf.Tensor


class Gaussian(base.Distribution):
    """Latent actions of independent dimensions, -1 to 1 across the bounds.

    "squashed": the action is tanh(latent), scaled to the bounds. "clipped": the latent itself,
    clipped to [-1, 1] and scaled to the bounds.
    """

    def __init__(self, action: specs.BoundedArray, *, squashed: bool, initial_std: float):
        """Creates the family.

        Args:
          action: float32 [D] with finite bounds.
          squashed: whether actions are squashed instead of clipped.
          initial_std: of a latent action where the network's outputs are 0.
        """
        self.output_size = 2 * action.shape[0]
        self._middle = np.float32((action.maximum + action.minimum) / 2)
        self._half_range = np.float32((action.maximum - action.minimum) / 2)
        self._squashed = squashed
        # softplus(shift) = initial_std - least
        self._shift = float(np.log(np.expm1(initial_std - _LEAST_STD)))

    def parameters(self, outputs: tf.Tensor) -> Parameters:
        """Means, and standard deviations by softplus, at least 0.001."""
        mean, spread = tf.split(outputs, 2, axis=-1)
        return Parameters(mean, _LEAST_STD + tf.nn.softplus(spread + self._shift))

    def sample(self, parameters: Parameters, seed: tf.Tensor) -> base.Draw:
        """Actions float32 [B, D] within the bounds, and the latent actions."""
        latent = _latent(parameters).sample(seed=tf.cast(seed, tf.int32))  # TFP refuses int64
        return base.Draw(self._to_bounds(latent), latent)

    def mode(self, parameters: Parameters) -> tf.Tensor:
        """The action of the latent mean."""
        return self._to_bounds(parameters.mean)

    def log_prob(self, parameters: Parameters, action: tf.Tensor, latent: tf.Tensor) -> tf.Tensor:
        """The latent action's log-density."""
        return _latent(parameters).log_prob(latent)

    def entropy(self, parameters: Parameters) -> tf.Tensor:
        """The latent Gaussian's: below 0 where it is narrow."""
        return _latent(parameters).entropy()

    def kl_divergence(self, parameters_p: Parameters, parameters_q: Parameters) -> tf.Tensor:
        """See `base.Distribution`."""
        return tfd.kl_divergence(_latent(parameters_p), _latent(parameters_q))

    def _to_bounds(self, latent: tf.Tensor) -> tf.Tensor:
        unit = tf.tanh(latent) if self._squashed else tf.clip_by_value(latent, -1.0, 1.0)
        action = self._middle + self._half_range * unit
        # Rounding may pass a bound by a unit in the last place.
        return tf.clip_by_value(
            action, self._middle - self._half_range, self._middle + self._half_range
        )


def _latent(parameters: Parameters) -> tfd.Distribution:
    mean, std = parameters
    return tfd.Independent(tfd.Normal(mean, std), reinterpreted_batch_ndims=1)

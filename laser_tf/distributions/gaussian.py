"""Continuous actions: diagonal Gaussians whose draws are squashed or clipped into the bounds.

Densities are taken of what was drawn before that, the latent action: in the ratio pi / mu and in
KL(pi || mu) the Jacobian of a squashing cancels, and a clipped action has no density at all.

The entropy of a squashed policy is the action's, in units of half ranges, at most that of the
uniform distribution. The latent Gaussian's would grow with its deviation without limit, and its
bonus drive all actions to the bounds. A clipped policy has no other than the latent one.
"""

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from dm_env import specs
from tensorflow_probability import distributions as tfd

from laser_tf.distributions import base

_LEAST_STD = 1e-3  # of a latent action, whose range of interest is [-1, 1]
# Gauss-Hermite quadrature: E f(z) = sum_i w_i f(x_i) of a standard normal z.
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


class Parameters(NamedTuple):
    """Of the latent Gaussian, float32 [..., D] each."""

    mean: tf.Tensor
    std: tf.Tensor


class Gaussian(base.Distribution):
    """Latent actions of independent dimensions, -1 to 1 across the bounds.

    "squashed": the action is tanh(latent), scaled to the bounds. "clipped": the latent itself,
    clipped to [-1, 1] and scaled to the bounds.
    """

    # A fresh policy is the same in every state, about the middle of the bounds (Andrychowicz et al.
    # 2021, "What Matters for On-Policy Deep Actor-Critic Methods?", section 3.2): means far from it
    # would start where squashing and clipping leave no gradient.
    output_scale = 1e-4

    def __init__(self, action: specs.BoundedArray, *, squashed: bool, initial_std: float):
        """Creates the family.

        Args:
          action: float32 [D] with finite bounds.
          squashed: whether actions are squashed instead of clipped.
          initial_std: of a latent action where the network's outputs are 0.
        """
        self.output_size = 2 * action.shape[0]
        self._minimum, self._maximum = np.float32(action.minimum), np.float32(action.maximum)
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
        # Not TensorFlow Probability's `sample`, which refuses seeds of int64.
        mean, std = parameters
        latent = mean + std * tf.random.stateless_normal(tf.shape(mean), seed)
        return base.Draw(self._to_bounds(latent), latent)

    def mode(self, parameters: Parameters) -> tf.Tensor:
        """The action of the latent mean."""
        return self._to_bounds(parameters.mean)

    def log_prob(self, parameters: Parameters, action: tf.Tensor, latent: tf.Tensor) -> tf.Tensor:
        """The latent action's log-density."""
        return _latent(parameters).log_prob(latent)

    def entropy(self, parameters: Parameters) -> tf.Tensor:
        """The latent Gaussian's, plus a squashing's E log |d tanh(u) / du|.

        Below 0 where the distribution is narrow.
        """
        entropy = _latent(parameters).entropy()
        if not self._squashed:
            return entropy
        mean, std = parameters
        latents = mean[..., None] + std[..., None] * np.float32(_POINTS)
        # log(1 - tanh(u)^2) without cancellation
        log_slopes = 2 * (math.log(2) - latents - tf.nn.softplus(-2 * latents))
        return entropy + tf.reduce_sum(log_slopes * np.float32(_WEIGHTS), axis=[-2, -1])

    def kl_divergence(self, parameters_p: Parameters, parameters_q: Parameters) -> tf.Tensor:
        """See `base.Distribution`."""
        return tfd.kl_divergence(_latent(parameters_p), _latent(parameters_q))

    def _to_bounds(self, latent: tf.Tensor) -> tf.Tensor:
        unit = tf.tanh(latent) if self._squashed else tf.clip_by_value(latent, -1.0, 1.0)
        action = self._middle + self._half_range * unit
        # Rounding may pass a bound by a unit in the last place.
        return tf.clip_by_value(action, self._minimum, self._maximum)


def _latent(parameters: Parameters) -> tfd.Distribution:
    mean, std = parameters
    return tfd.Independent(tfd.Normal(mean, std), reinterpreted_batch_ndims=1)

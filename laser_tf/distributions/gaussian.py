"""Diagonal Gaussians for continuous actions, squashed or clipped into the bounds.

Densities are those of the latent action, the sample before squashing or clipping. The Jacobian of
the squashing cancels in the ratio pi / mu and in KL(pi || mu). A clipped action has no density.

The entropy of a squashed policy is that of the action in units of half ranges, at most the entropy
of the uniform distribution. The latent entropy has no upper bound, and its bonus would drive
actions to the bounds. A clipped policy uses the latent entropy, because it has no other.

Mean and standard deviation are bounded. An update moves the mean by about the same distance at any
deviation, so that its KL divergence grows with 1 / std^2. Narrow policies leave LASER's trust
region with each update, and then no data corrects them (docs/results/vectors.md). SAC and Acme
bound the deviation, too.
"""

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from dm_env import specs
from tensorflow_probability import distributions as tfd

from laser_tf.distributions import base

MIN_STD, MAX_STD = 0.3, 2.0  # of a latent action, whose typical range is [-1, 1]
_MAX_MEAN = 3.0  # absolute; tanh(3) is 0.995
# Gauss-Hermite quadrature: E f(z) = sum_i w_i f(x_i) for a standard normal z. The max error of the
# entropy is 0.003 nats at a deviation of 2; it would be 0.1 nats at 5.
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


class Parameters(NamedTuple):
    """Parameters of the latent Gaussian, float32 [..., D] each."""

    mean: tf.Tensor
    std: tf.Tensor


class Gaussian(base.Distribution):
    """Gaussian with independent dimensions, whose latent range [-1, 1] is scaled to the bounds.

    A squashed action is tanh(latent). A clipped action is the latent action clipped to [-1, 1].
    """

    # Small weights give an initial policy that is the same in all states, centred in the bounds
    # (Andrychowicz et al. 2021, "What Matters for On-Policy Deep Actor-Critic Methods?", section
    # 3.2). Initial means far from the centre would have no gradient after squashing or clipping.
    output_scale = 1e-4

    def __init__(self, action: specs.BoundedArray, *, squashed: bool, initial_std: float = 0.5):
        """Creates the family.

        Args:
          action: Action spec, float32 [D] with finite bounds.
          squashed: True to squash actions, false to clip them.
          initial_std: Standard deviation of the latent action for network outputs of 0, between
            `MIN_STD` and `MAX_STD`.
        """
        self.output_size = 2 * action.shape[0]
        self._minimum, self._maximum = np.float32(action.minimum), np.float32(action.maximum)
        self._middle = np.float32((action.maximum + action.minimum) / 2)
        self._half_range = np.float32((action.maximum - action.minimum) / 2)
        self._squashed = squashed
        # sigmoid(shift) is the position of initial_std between the bounds.
        self._shift = float(np.log((initial_std - MIN_STD) / (MAX_STD - initial_std)))

    def parameters(self, outputs: tf.Tensor) -> Parameters:
        """Returns means in [-3, 3] from a tanh and deviations in [0.3, 2] from a sigmoid."""
        mean, spread = tf.split(outputs, 2, axis=-1)
        std = MIN_STD + (MAX_STD - MIN_STD) * tf.sigmoid(spread + self._shift)
        return Parameters(_MAX_MEAN * tf.tanh(mean / _MAX_MEAN), std)

    def sample(self, parameters: Parameters, seed: tf.Tensor) -> base.ActionSample:
        """Samples actions within the bounds and latent actions, float32 [B, D] each."""
        # `sample` of TensorFlow Probability rejects int64 seeds.
        mean, std = parameters
        latent = mean + std * tf.random.stateless_normal(tf.shape(mean), seed)
        return base.ActionSample(self._to_bounds(latent), latent)

    def mode(self, parameters: Parameters) -> tf.Tensor:
        """Returns the action of the latent mean."""
        return self._to_bounds(parameters.mean)

    def log_prob(self, parameters: Parameters, action: tf.Tensor, latent: tf.Tensor) -> tf.Tensor:
        """Returns the log-density of the latent action."""
        return _latent(parameters).log_prob(latent)

    def entropy(self, parameters: Parameters) -> tf.Tensor:
        """Returns the latent entropy, plus E log |d tanh(u) / du| if squashed, by quadrature.

        Narrow distributions have an entropy below 0. The max error is 0.003 nats per dimension.
        """
        entropy = _latent(parameters).entropy()
        if not self._squashed:
            return entropy
        mean, std = parameters
        latents = mean[..., None] + std[..., None] * np.float32(_POINTS)
        # Equals log(1 - tanh(u)^2), without cancellation.
        log_slopes = 2 * (math.log(2) - latents - tf.nn.softplus(-2 * latents))
        return entropy + tf.reduce_sum(log_slopes * np.float32(_WEIGHTS), axis=[-2, -1])

    def kl_divergence(self, parameters_p: Parameters, parameters_q: Parameters) -> tf.Tensor:
        """See `base.Distribution`."""
        return tfd.kl_divergence(_latent(parameters_p), _latent(parameters_q))

    def _to_bounds(self, latent: tf.Tensor) -> tf.Tensor:
        unit = tf.tanh(latent) if self._squashed else tf.clip_by_value(latent, -1.0, 1.0)
        action = self._middle + self._half_range * unit
        # Rounding errors may exceed a bound by a unit in the last place.
        return tf.clip_by_value(action, self._minimum, self._maximum)


def _latent(parameters: Parameters) -> tfd.Distribution:
    mean, std = parameters
    return tfd.Independent(tfd.Normal(mean, std), reinterpreted_batch_ndims=1)

"""Interface of action distributions."""

import abc
from typing import Any, NamedTuple

import tensorflow as tf


class ActionSample(NamedTuple):
    """Sampled actions, with leading shape `[B]`."""

    action: tf.Tensor  # within the bounds of the environment
    # Sample before clipping or squashing, which defines the density; () for other distributions.
    latent: Any = ()


class Distribution(abc.ABC):
    """Family of distributions over the actions of one action spec.

    Parameters are a nest of tensors [..., P], which replay stores for behaviour policies. All
    methods accept any number of leading axes.
    """

    output_size: int  # size P of the last layer of the network
    output_scale: float = 1.0  # initial variance of the weights of that layer, times its fan-in

    @abc.abstractmethod
    def parameters(self, outputs: tf.Tensor) -> Any:
        """Converts outputs of a linear layer, float32 [..., P], to distribution parameters."""

    @abc.abstractmethod
    def sample(self, parameters: Any, seed: tf.Tensor) -> ActionSample:
        """Samples an action from each distribution; `seed` is an integer tensor [2]."""

    @abc.abstractmethod
    def mode(self, parameters: Any) -> tf.Tensor:
        """Returns the most probable action, or the mean of a Gaussian, within the bounds."""

    @abc.abstractmethod
    def log_prob(self, parameters: Any, action: tf.Tensor, latent: Any) -> tf.Tensor:
        """Returns the log-probability or log-density of a sample, float32 [...]."""

    @abc.abstractmethod
    def entropy(self, parameters: Any) -> tf.Tensor:
        """Returns the entropy in nats, float32 [...]."""

    @abc.abstractmethod
    def kl_divergence(self, parameters_p: Any, parameters_q: Any) -> tf.Tensor:
        """Returns KL(p || q) in nats, float32 [...]."""

    def log_importance_ratio(
        self, target: Any, behaviour: Any, action: tf.Tensor, latent: Any
    ) -> tf.Tensor:
        """Returns log(pi(a|x) / mu(a|x)) of a sample, float32 [...]."""
        return self.log_prob(target, action, latent) - self.log_prob(behaviour, action, latent)

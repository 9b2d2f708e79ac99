"""What every action distribution can do: one interface for acting, ratios, KL and entropy."""

import abc
from typing import Any, NamedTuple

import tensorflow as tf


class Draw(NamedTuple):
    """Drawn actions, leading shape `[B]`."""

    action: tf.Tensor  # what the environment is sent, within its bounds
    # What densities are taken of where that is not the action itself: a clipped or squashed action
    # no longer tells what was drawn. () where it is.
    latent: Any = ()


class Distribution(abc.ABC):
    """A family of distributions over the actions of one action spec.

    Parameters are a nest of tensors [..., P]: the same that replay stores of a behaviour policy.
    Every function takes any number of leading axes.
    """

    output_size: int  # P, numbers that a network's last layer has to give
    output_scale: float = 1.0  # of that layer's first weights: variance times fan-in

    @abc.abstractmethod
    def parameters(self, outputs: tf.Tensor) -> Any:
        """What a linear layer gave, float32 [..., P] -> the distribution's parameters."""

    @abc.abstractmethod
    def sample(self, parameters: Any, seed: tf.Tensor) -> Draw:
        """Draws an action of each distribution; `seed` is an integer tensor [2]."""

    @abc.abstractmethod
    def mode(self, parameters: Any) -> tf.Tensor:
        """The greedy action: the most probable one, or a Gaussian's mean, within the bounds."""

    @abc.abstractmethod
    def log_prob(self, parameters: Any, action: tf.Tensor, latent: Any) -> tf.Tensor:
        """Log-probability or log-density, float32 [...], of what `sample` drew."""

    @abc.abstractmethod
    def entropy(self, parameters: Any) -> tf.Tensor:
        """In nats, float32 [...]."""

    @abc.abstractmethod
    def kl_divergence(self, parameters_p: Any, parameters_q: Any) -> tf.Tensor:
        """KL(p || q) in nats, float32 [...]."""

    def log_importance_ratio(
        self, target: Any, behaviour: Any, action: tf.Tensor, latent: Any
    ) -> tf.Tensor:
        """log(pi(a|x) / mu(a|x)), float32 [...]."""
        return self.log_prob(target, action, latent) - self.log_prob(behaviour, action, latent)

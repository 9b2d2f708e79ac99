"""Statistics phi of a policy f(.|phi) and gradients with respect to phi (ACER, section 3.3).

The trust region of ACER bounds an update in the space of phi and then propagates it back to the
weights.
"""

import abc
from typing import Any

import tensorflow as tf

from laser_tf.ops import action_mask

# Lower bound of probabilities in denominators. It keeps gradients and their squares in the range of
# float32. Such gradients have a negligible effect on the logits.
_MIN_PROBABILITY = 1e-6


class PolicyStatistics(abc.ABC):
    """Statistics phi of one family of distributions, computed from its parameters."""

    @abc.abstractmethod
    def compute(self, parameters: Any) -> tf.Tensor:
        """Returns phi, float32 [..., S], which receives the gradient."""

    @abc.abstractmethod
    def score(self, parameters: Any, action: tf.Tensor, latent: Any) -> tf.Tensor:
        """Returns the gradient of log f(a|phi) with respect to phi, float32 [..., S]."""

    def expected_score(self, parameters: Any, weights: tf.Tensor) -> tf.Tensor:
        """Returns E_{a ~ pi}[weights(a) grad log f(a|phi)], float32 [..., S].

        Args:
          parameters: Parameters of a distribution over discrete actions.
          weights: Weights of the actions, float32 [..., A].
        """
        raise NotImplementedError

    @abc.abstractmethod
    def divergence_gradient(self, average: Any, parameters: Any) -> tf.Tensor:
        """Returns the gradient of KL(f(.|average) || f(.|phi)) in phi, float32 [..., S]."""

    @abc.abstractmethod
    def entropy_gradient(self, parameters: Any) -> tf.Tensor:
        """Returns the gradient of the entropy with respect to phi, float32 [..., S]."""


class Probabilities(PolicyStatistics):
    """Probabilities of a categorical policy as statistics phi, float32 [..., A].

    As in the paper, gradients treat phi as any vector, not only as one that sums to 1. The gradient
    of the linearised divergence is negative everywhere, so that raising a probability never raises
    the divergence. The trust region therefore only bounds steps that lower probabilities.
    """

    def compute(self, parameters: tf.Tensor) -> tf.Tensor:
        """See `PolicyStatistics`; S is A."""
        return tf.nn.softmax(parameters)

    def score(self, parameters: tf.Tensor, action: tf.Tensor, latent: tuple = ()) -> tf.Tensor:
        """Returns 1 / phi_a at the action and 0 elsewhere."""
        return _one_hot(action, parameters) / self._denominators(parameters)

    def expected_score(self, parameters: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns the weights, because phi_a times 1 / phi_a is 1."""
        return weights

    def divergence_gradient(self, average: tf.Tensor, parameters: tf.Tensor) -> tf.Tensor:
        """Returns - phi_average / phi."""
        return -tf.nn.softmax(average) / self._denominators(parameters)

    def entropy_gradient(self, parameters: tf.Tensor) -> tf.Tensor:
        """Returns - log phi - 1, and 0 for forbidden actions."""
        gradient = -tf.nn.log_softmax(parameters) - 1
        return tf.where(action_mask.is_allowed(parameters), gradient, 0.0)

    def _denominators(self, parameters: tf.Tensor) -> tf.Tensor:
        return tf.maximum(tf.nn.softmax(parameters), _MIN_PROBABILITY)


class Logits(PolicyStatistics):
    """Logits of a categorical policy as statistics phi, float32 [..., A]; not in the paper.

    Adding a constant to all logits changes nothing, and no gradient of this class has a component
    in that direction. The trust region therefore bounds steps that raise or lower a probability.
    """

    def compute(self, parameters: tf.Tensor) -> tf.Tensor:
        """See `PolicyStatistics`; S is A."""
        return parameters

    def score(self, parameters: tf.Tensor, action: tf.Tensor, latent: tuple = ()) -> tf.Tensor:
        """Returns 1 - pi(a) at the action and - pi elsewhere."""
        return _one_hot(action, parameters) - tf.nn.softmax(parameters)

    def expected_score(self, parameters: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Returns pi (weights - E_pi[weights])."""
        pi = tf.nn.softmax(parameters)
        return pi * (weights - tf.reduce_sum(pi * weights, axis=-1, keepdims=True))

    def divergence_gradient(self, average: tf.Tensor, parameters: tf.Tensor) -> tf.Tensor:
        """Returns pi - pi_average."""
        return tf.nn.softmax(parameters) - tf.nn.softmax(average)

    def entropy_gradient(self, parameters: tf.Tensor) -> tf.Tensor:
        """Returns - pi (log pi + H), where H is the entropy."""
        log_pi = tf.nn.log_softmax(parameters)
        return -self.expected_score(parameters, log_pi)


def _one_hot(action: tf.Tensor, parameters: tf.Tensor) -> tf.Tensor:
    return tf.one_hot(action, parameters.shape[-1], dtype=parameters.dtype)

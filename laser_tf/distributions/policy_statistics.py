"""The statistics phi of a policy f(.|phi), and gradients with respect to them (ACER, section 3.3).

ACER's trust region looks at these gradients, not at those of a network's outputs: a step in the
space of the statistics is bounded there, and then propagated back.
"""

import abc
from typing import Any

import tensorflow as tf

# Below it a probability stands in a denominator as if it were this: gradients with respect to it
# and their squares stay within float32, and behind a softmax they weigh nothing any more.
_LEAST_PROBABILITY = 1e-6


class PolicyStatistics(abc.ABC):
    """Of one family; parameters are those of its `base.Distribution`."""

    @abc.abstractmethod
    def of(self, parameters: Any) -> tf.Tensor:
        """Phi, float32 [..., S]; receives the gradient."""

    @abc.abstractmethod
    def score(self, parameters: Any, action: tf.Tensor, latent: Any) -> tf.Tensor:
        """The gradient of log f(a|phi) with respect to phi, float32 [..., S]."""

    def expected_score(self, parameters: Any, weights: tf.Tensor) -> tf.Tensor:
        """E_{a ~ pi} of weights(a) times the gradient of log f(a|phi), float32 [..., S].

        Args:
          parameters: of discrete actions.
          weights: float32 [..., A].
        """
        raise NotImplementedError

    @abc.abstractmethod
    def divergence_gradient(self, average: Any, parameters: Any) -> tf.Tensor:
        """The gradient of KL(f(.|average) || f(.|phi)) with respect to phi, float32 [..., S]."""

    @abc.abstractmethod
    def entropy_gradient(self, parameters: Any) -> tf.Tensor:
        """The gradient of the entropy with respect to phi, float32 [..., S]."""


class Probabilities(PolicyStatistics):
    """Of a categorical policy with logits float32 [..., A]: phi is its vector of probabilities.

    As in the paper, phi is taken for any vector, not only for one that sums to 1. What makes an
    action more probable then never raises the linearised divergence, whose gradient is below 0
    everywhere: only steps that make actions less probable are bounded.
    """

    def of(self, parameters: tf.Tensor) -> tf.Tensor:
        """See `PolicyStatistics`; S is A."""
        return tf.nn.softmax(parameters)

    def score(self, parameters: tf.Tensor, action: tf.Tensor, latent: tuple = ()) -> tf.Tensor:
        """1 / phi_a at the action, 0 elsewhere."""
        return _one_hot(action, parameters) / self._denominators(parameters)

    def expected_score(self, parameters: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """The weights: phi_a times 1 / phi_a is 1."""
        return weights

    def divergence_gradient(self, average: tf.Tensor, parameters: tf.Tensor) -> tf.Tensor:
        """- phi_average / phi."""
        return -tf.nn.softmax(average) / self._denominators(parameters)

    def entropy_gradient(self, parameters: tf.Tensor) -> tf.Tensor:
        """- log phi - 1."""
        return -tf.nn.log_softmax(parameters) - 1

    def _denominators(self, parameters: tf.Tensor) -> tf.Tensor:
        return tf.maximum(tf.nn.softmax(parameters), _LEAST_PROBABILITY)


class Logits(PolicyStatistics):
    """Of a categorical policy: phi is its vector of logits, float32 [..., A]; not in the paper.

    A constant added to all logits changes nothing, and no gradient here points that way: steps are
    bounded both where an action becomes less probable and where it becomes more so.
    """

    def of(self, parameters: tf.Tensor) -> tf.Tensor:
        """See `PolicyStatistics`; S is A."""
        return parameters

    def score(self, parameters: tf.Tensor, action: tf.Tensor, latent: tuple = ()) -> tf.Tensor:
        """1 - pi(a) at the action, - pi elsewhere."""
        return _one_hot(action, parameters) - tf.nn.softmax(parameters)

    def expected_score(self, parameters: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """Pi times the weights, less pi times their mean under pi."""
        pi = tf.nn.softmax(parameters)
        return pi * (weights - tf.reduce_sum(pi * weights, axis=-1, keepdims=True))

    def divergence_gradient(self, average: tf.Tensor, parameters: tf.Tensor) -> tf.Tensor:
        """Pi - pi_average."""
        return tf.nn.softmax(parameters) - tf.nn.softmax(average)

    def entropy_gradient(self, parameters: tf.Tensor) -> tf.Tensor:
        """- pi (log pi + H)."""
        log_pi = tf.nn.log_softmax(parameters)
        return -self.expected_score(parameters, log_pi)


def _one_hot(action: tf.Tensor, parameters: tf.Tensor) -> tf.Tensor:
    return tf.one_hot(action, parameters.shape[-1], dtype=parameters.dtype)

"""Discrete actions: parameters are logits float32 [..., A]."""

import tensorflow as tf

from laser_tf.distributions import base
from laser_tf.ops import categorical


class Categorical(base.Distribution):
    """The distribution over A actions with probabilities softmax(logits)."""

    def __init__(self, num_actions: int):
        """Takes `num_actions`, A."""
        self.output_size = num_actions

    def parameters(self, outputs: tf.Tensor) -> tf.Tensor:
        """The logits themselves."""
        return outputs

    def sample(self, parameters: tf.Tensor, seed: tf.Tensor) -> base.Draw:
        """Actions int32 [B] of logits [B, A]."""
        return base.Draw(tf.random.stateless_categorical(parameters, 1, seed, dtype=tf.int32)[:, 0])

    def mode(self, parameters: tf.Tensor) -> tf.Tensor:
        """Actions int32 [...]; the first of several largest logits."""
        return tf.argmax(parameters, axis=-1, output_type=tf.int32)

    def log_prob(self, parameters: tf.Tensor, action: tf.Tensor, latent: tuple = ()) -> tf.Tensor:
        """See `base.Distribution`; there is no `latent`."""
        return categorical.log_probability(parameters, action)

    def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
        """At least 0."""
        return categorical.entropy(parameters)

    def kl_divergence(self, parameters_p: tf.Tensor, parameters_q: tf.Tensor) -> tf.Tensor:
        """See `base.Distribution`."""
        return categorical.kl_divergence(parameters_p, parameters_q)

    def log_importance_ratio(
        self, target: tf.Tensor, behaviour: tf.Tensor, action: tf.Tensor, latent: tuple = ()
    ) -> tf.Tensor:
        """See `base.Distribution`; one gather instead of two."""
        return categorical.log_importance_ratio(target, behaviour, action)

"""Categorical distribution for discrete actions."""

import tensorflow as tf

from laser_tf.distributions import base
from laser_tf.ops import categorical


class Categorical(base.Distribution):
    """Distribution over A actions with logits float32 [..., A] as parameters."""

    def __init__(self, num_actions: int):
        self.output_size = num_actions

    def parameters(self, outputs: tf.Tensor) -> tf.Tensor:
        """Returns the outputs, which are the logits."""
        return outputs

    def sample(self, parameters: tf.Tensor, seed: tf.Tensor) -> base.ActionSample:
        """Samples actions int32 [B] from logits [B, A]."""
        return base.ActionSample(
            tf.random.stateless_categorical(parameters, 1, seed, dtype=tf.int32)[:, 0]
        )

    def mode(self, parameters: tf.Tensor) -> tf.Tensor:
        """Returns the action with the largest logit (the first if several), int32 [...]."""
        return tf.argmax(parameters, axis=-1, output_type=tf.int32)

    def log_prob(self, parameters: tf.Tensor, action: tf.Tensor, latent: tuple = ()) -> tf.Tensor:
        """See `base.Distribution`; `latent` is not used."""
        return categorical.log_probability(parameters, action)

    def entropy(self, parameters: tf.Tensor) -> tf.Tensor:
        """See `base.Distribution`; at least 0."""
        return categorical.entropy(parameters)

    def kl_divergence(self, parameters_p: tf.Tensor, parameters_q: tf.Tensor) -> tf.Tensor:
        """See `base.Distribution`."""
        return categorical.kl_divergence(parameters_p, parameters_q)

    def log_importance_ratio(
        self, target: tf.Tensor, behaviour: tf.Tensor, action: tf.Tensor, latent: tuple = ()
    ) -> tf.Tensor:
        """See `base.Distribution`; needs one gather instead of two."""
        return categorical.log_importance_ratio(target, behaviour, action)

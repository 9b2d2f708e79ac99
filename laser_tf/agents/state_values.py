"""The critic of an actor-critic agent: values of states, at the rewards' scale or at PopArt's."""

from typing import NamedTuple

import tensorflow as tf

from laser_tf.networks import heads
from laser_tf.ops import popart


class Regression(NamedTuple):
    """What the critic is regressed on, and what that makes of advantages."""

    values: tf.Tensor  # float32 [T, B]; receive the gradient
    targets: tf.Tensor  # float32 [T, B], at the same scale
    scale: tf.Tensor  # float32 [B] or []; advantages are divided by it


class StateValues(tf.Module):
    """V(x) in units of reward, the same function for all tasks."""

    def __init__(self):
        super().__init__()
        self._layer = heads.dense(1)

    def __call__(self, features: tf.Tensor, tasks: tf.Tensor) -> tf.Tensor:
        """Features [..., B, F] of tasks int32 [B] -> values float32 [..., B]."""
        return self._layer(tf.cast(features, tf.float32))[..., 0]

    def regression(
        self,
        features: tf.Tensor,
        values: tf.Tensor,
        targets: tf.Tensor,
        mask: tf.Tensor,
        tasks: tf.Tensor,
    ) -> Regression:
        """What to regress on what.

        Args:
          features: [T, B, F].
          values: float32 [T, B], what this object made of them.
          targets: float32 [T, B], in units of reward.
          mask: bool [T, B], of the entries that are learned from.
          tasks: int32 [B].
        """
        return Regression(values, targets, tf.constant(1.0))


class PopArtStateValues(tf.Module):
    """Each task's V(x), learned at unit scale: see `ops.popart`."""

    def __init__(self, num_tasks: int, step: float):
        """Creates the critic.

        Args:
          num_tasks: K.
          step: of the moments' moving averages, an update.
        """
        super().__init__()
        self._step = step
        self._layer = heads.dense(num_tasks)
        # Normalisation starts as the identity. Not trainable, yet part of every checkpoint.
        self._mean = tf.Variable(tf.zeros([num_tasks]), trainable=False, name="mean")
        self._variance = tf.Variable(tf.ones([num_tasks]), trainable=False, name="variance")

    def __call__(self, features: tf.Tensor, tasks: tf.Tensor) -> tf.Tensor:
        """Features [..., B, F] of tasks int32 [B] -> values in units of reward, [..., B]."""
        return popart.unnormalise(self._statistics(), self._normalised(features, tasks), tasks)

    def regression(
        self,
        features: tf.Tensor,
        values: tf.Tensor,
        targets: tf.Tensor,
        mask: tf.Tensor,
        tasks: tf.Tensor,
    ) -> Regression:
        """Moves the moments toward the targets', then regresses at unit scale.

        The arguments are those of `StateValues.regression`. The layer's outputs are preserved, but
        its weights move: the normalised values, which receive the gradient, are computed anew.
        """
        old = self._statistics()
        new = popart.update(old, targets, mask, tasks, self._step)
        kernel, bias = popart.preserve_outputs(old, new, self._layer.kernel, self._layer.bias)
        for variable, value in (
            (self._mean, new.mean),
            (self._variance, new.variance),
            (self._layer.kernel, kernel),
            (self._layer.bias, bias),
        ):
            variable.assign(value)
        return Regression(
            self._normalised(features, tasks),
            popart.normalise(new, targets, tasks),
            tf.gather(popart.sigma(new), tasks),
        )

    def _statistics(self) -> popart.Statistics:
        # Copies: reading a variable once more after `assign` would give what it was moved to.
        return popart.Statistics(tf.identity(self._mean), tf.identity(self._variance))

    def _normalised(self, features: tf.Tensor, tasks: tf.Tensor) -> tf.Tensor:
        values = self._layer(tf.cast(features, tf.float32))
        # Each batch entry has one task: a sum over one, which is cheap to differentiate.
        own = tf.one_hot(tasks, values.shape[-1], True, False, dtype=tf.bool)
        return tf.reduce_sum(tf.where(own, values, 0.0), axis=-1)

"""State-value critics, with and without PopArt normalisation."""

from typing import NamedTuple

import tensorflow as tf

from laser_tf.networks import heads
from laser_tf.ops import popart


class ValueTargets(NamedTuple):
    """Predictions and targets of the value loss, and the scale of advantages."""

    values: tf.Tensor  # predictions, float32 [T, B]; differentiable
    targets: tf.Tensor  # targets at the scale of `values`, float32 [T, B]
    scale: tf.Tensor  # divisor of advantages, float32 [B] or []


class StateValues(tf.Module):
    """V(x) in units of reward, shared by all tasks."""

    def __init__(self):
        super().__init__()
        self._layer = heads.dense(1)

    def __call__(self, features: tf.Tensor, tasks: tf.Tensor) -> tf.Tensor:
        """Computes values, float32 [..., B], from features [..., B, F]; ignores the tasks."""
        return self._layer(tf.cast(features, tf.float32))[..., 0]

    def value_loss_inputs(
        self,
        features: tf.Tensor,
        values: tf.Tensor,
        targets: tf.Tensor,
        mask: tf.Tensor,
        tasks: tf.Tensor,
    ) -> ValueTargets:
        """Returns predictions and targets of the value loss.

        This critic computed `values` [T, B] from `features` [T, B, F]. Targets, float32 [T, B], are
        in units of reward. The loss includes entries with a true `mask`, bool [T, B].
        """
        return ValueTargets(values, targets, tf.constant(1.0))


class PopArtStateValues(tf.Module):
    """V(x) of each of K tasks, learned at unit scale, see `ops.popart`.

    `step` is the step size of the moments' moving averages per update. For `rises_at_once`, see
    `popart.update`.
    """

    def __init__(self, num_tasks: int, step: float, *, rises_at_once: bool = False):
        super().__init__()
        self._step, self._rises_at_once = step, rises_at_once
        self._layer = heads.dense(num_tasks)
        # Initial moments leave values unchanged. Checkpoints contain these untrained variables.
        self._mean = tf.Variable(tf.zeros([num_tasks]), trainable=False, name="mean")
        self._variance = tf.Variable(tf.ones([num_tasks]), trainable=False, name="variance")

    def __call__(self, features: tf.Tensor, tasks: tf.Tensor) -> tf.Tensor:
        """Computes values in units of reward, [..., B], of features [..., B, F] and tasks [B]."""
        normalised = self._normalised_values(features, tasks)
        return popart.unnormalise(self._statistics(), normalised, tasks)

    def value_loss_inputs(
        self,
        features: tf.Tensor,
        values: tf.Tensor,
        targets: tf.Tensor,
        mask: tf.Tensor,
        tasks: tf.Tensor,
    ) -> ValueTargets:
        """Updates the moments, then returns predictions and targets at unit scale.

        The update changes the layer and preserves its unnormalised outputs, so predictions are
        computed again.
        """
        old = self._statistics()
        new = popart.update(
            old, targets, mask, tasks, self._step, rises_at_once=self._rises_at_once
        )
        kernel, bias = popart.preserve_outputs(old, new, self._layer.kernel, self._layer.bias)
        for variable, value in (
            (self._mean, new.mean),
            (self._variance, new.variance),
            (self._layer.kernel, kernel),
            (self._layer.bias, bias),
        ):
            variable.assign(value)
        return ValueTargets(
            self._normalised_values(features, tasks),
            popart.normalise(new, targets, tasks),
            tf.gather(popart.sigma(new), tasks),
        )

    def _statistics(self) -> popart.Statistics:
        # Copies, because a variable that is read after `assign` returns its new value.
        return popart.Statistics(tf.identity(self._mean), tf.identity(self._variance))

    def _normalised_values(self, features: tf.Tensor, tasks: tf.Tensor) -> tf.Tensor:
        values = self._layer(tf.cast(features, tf.float32))
        # Selects the value of each entry's task. The gradient of a masked sum is cheaper than that
        # of a gather.
        mask = tf.one_hot(tasks, values.shape[-1], True, False, dtype=tf.bool)
        return tf.reduce_sum(tf.where(mask, values, 0.0), axis=-1)

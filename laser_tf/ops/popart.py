"""PopArt normalisation of values for each task (van Hasselt et al. 2016; Hessel et al. 2019).

The value head of a task predicts n(x), which represents the value sigma n(x) + mu. An update has
these steps:

 1. values = unnormalise(old, n, tasks). Compute targets from the values, in units of reward.
 2. new = update(old, targets, mask, tasks). This adaptively rescales targets (Art).
 3. kernel, bias = preserve_outputs(old, new, ...). This preserves outputs precisely (Pop).
 4. Compute n again with the new kernel and bias.
 5. Take a gradient step on the loss of n with respect to normalise(new, targets, tasks).

The policy gradient divides advantages by `sigma(new)` of their task (Hessel et al.).
"""

from typing import NamedTuple

import tensorflow as tf

from laser_tf.ops import joint_batch, masking

SIGMA_MIN, SIGMA_MAX = 1e-4, 1e6


class Statistics(NamedTuple):
    """Moments of the targets of each task, which receive no gradient.

    The papers track the moments mu and nu and derive sigma^2 = nu - mu^2. This class stores
    the central moment nu - mu^2 instead. In float32 the difference is noise if |mu| >> sigma, and
    nu stops changing if a step of 3e-4 rounds to 0.
    """

    mean: tf.Tensor  # float32 [K], mu
    variance: tf.Tensor  # float32 [K], nu - mu^2, not clipped


def sigma(statistics: Statistics) -> tf.Tensor:
    """Returns the scale sqrt(nu - mu^2) of each task, clipped, float32 [K]."""
    # Clip before the square root, because the variance may be negative.
    variance = tf.clip_by_value(statistics.variance, SIGMA_MIN**2, SIGMA_MAX**2)
    return tf.stop_gradient(tf.sqrt(variance))


def normalise(statistics: Statistics, values: tf.Tensor, tasks: tf.Tensor) -> tf.Tensor:
    """Returns (v - mu) / sigma, float32 [..., B], with mu and sigma of the task of each entry.

    Args:
      statistics: Statistics of K tasks.
      values: Values in units of reward, float32 [..., B]; receive the gradient.
      tasks: Task of each batch entry, int32 [B], from 0 to K - 1.
    """
    mean, scale = _mean_and_scale(statistics, tasks)
    return (values - mean) / scale


def unnormalise(statistics: Statistics, values: tf.Tensor, tasks: tf.Tensor) -> tf.Tensor:
    """Returns sigma n + mu, the inverse of `normalise`."""
    mean, scale = _mean_and_scale(statistics, tasks)
    return scale * values + mean


def _mean_and_scale(statistics: Statistics, tasks: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns mean and scale of the task of each batch entry, float32 [B] each."""
    mean = tf.stop_gradient(statistics.mean)
    return tf.gather(mean, tasks), tf.gather(sigma(statistics), tasks)


def update(
    statistics: Statistics,
    targets: tf.Tensor,
    mask: tf.Tensor,
    tasks: tf.Tensor,
    step: float,
    *,
    rises_at_once: bool = False,
) -> Statistics:
    """Returns statistics after one step toward the moments of the targets G of each task.

        mu' = mu + step (m - mu)
        nu' = nu + step (m_2 - nu),   m = mean of G, m_2 = mean of G^2

    The papers update once for each target. Here a batch is ONE update, with means over the targets
    of a task. The speed therefore does not depend on T, B or the number of batch entries of a task.
    In rlax, each target makes an update. The moments move T B / K times as fast, and overshoot if
    step T B > 1.

    With central moments, d = m - mu and s^2 = m_2 - m^2, the update is

        nu' - mu'^2 = (1 - step) (nu - mu^2 + step d^2) + step s^2

    With `rises_at_once`, sigma'^2 is at least the mean of (G - mu')^2 in the batch. Normalised
    targets, and so the gradients, are then bounded when returns grow suddenly. With a small step
    alone, the first goal of a task with rare rewards is a target of up to 1 / sqrt(step) sigma.

    Statistics do not change, to the last bit, for tasks without targets or with non-finite targets.
    The learner skips weight updates with non-finite targets, but NaN statistics could not recover.
    With several replicas, the moments are those of the joint batch.

    Args:
      statistics: Statistics of K tasks.
      targets: Targets in units of reward, float32 [T, B]; receive no gradient.
      mask: Mask, bool [T, B]. Targets are not read where it is false.
      tasks: Task of each batch entry, int32 [B], from 0 to K - 1.
      step: Step size of the moving averages, in (0, 1].
      rises_at_once: Whether sigma follows larger targets without delay. Not in the papers.
    """
    mean, variance = statistics
    has_task = tf.one_hot(tasks, mean.shape[0], True, False, dtype=tf.bool)  # [B, K]

    # Subtracting the means before squaring keeps the squares small and precise.
    distances = masking.keep(mask, targets - tf.gather(mean, tasks))
    counts, shifts = joint_batch.all_reduce_sum(
        (_sum_by_task(tf.cast(mask, tf.float32), has_task), _sum_by_task(distances, has_task))
    )
    safe_counts = tf.maximum(counts, 1.0)
    shift = shifts / safe_counts
    spreads = tf.square(masking.keep(mask, distances - tf.gather(shift, tasks)))
    spread = joint_batch.all_reduce_sum(_sum_by_task(spreads, has_task)) / safe_counts

    new_mean = mean + step * shift
    new_variance = (1 - step) * (variance + step * tf.square(shift)) + step * spread
    if rises_at_once:
        new_variance = tf.maximum(new_variance, spread + tf.square((1 - step) * shift))
    is_valid = (counts > 0) & tf.math.is_finite(new_mean) & tf.math.is_finite(new_variance)
    return Statistics(
        mean=tf.stop_gradient(tf.where(is_valid, new_mean, mean)),
        variance=tf.stop_gradient(tf.where(is_valid, new_variance, variance)),
    )


def _sum_by_task(x: tf.Tensor, has_task: tf.Tensor) -> tf.Tensor:
    """Sums x [T, B] over time and over the batch entries of each task (bool [B, K]) to [K]."""
    entry_sums = tf.reduce_sum(x, axis=0)[:, None]
    # tf.where instead of a product, so that NaN of one task does not reach other tasks.
    return tf.reduce_sum(tf.where(has_task, entry_sums, 0.0), axis=0)


def preserve_outputs(
    old: Statistics, new: Statistics, kernel: tf.Tensor, bias: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns kernel and bias of the last layer that preserve the unnormalised values.

        w' = (sigma / sigma') w,    b' = (sigma b + mu - mu') / sigma'

    Args:
      old: Statistics before the update (mu, sigma).
      new: Statistics after the update (mu', sigma').
      kernel: Kernel w of the layer, float32 [F, K].
      bias: Bias b of the layer, float32 [K].
    """
    old_scale, new_scale = sigma(old), sigma(new)
    new_bias = (old_scale * bias + (old.mean - new.mean)) / new_scale
    return kernel * (old_scale / new_scale), new_bias

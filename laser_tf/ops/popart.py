"""PopArt (van Hasselt et al. 2016) per task (Hessel et al. 2019): values learnt at unit scale.

A task's value head predicts n(x), which stands for the value sigma n(x) + mu. An update goes

    values = unnormalise(old, n, tasks)             and with them the targets, in units of reward
    new = update(old, targets, mask, tasks)         adaptively rescaling targets (Art)
    kernel, bias = preserve_outputs(old, new, ...)  preserving outputs precisely (Pop)
    n computed again with the new kernel and bias   the same values, as the new statistics see them
    loss of n against normalise(new, targets, tasks), then the gradient step,

and the advantages of the policy gradient are divided by `sigma(new)` of their task (Hessel et al.).
"""

from typing import NamedTuple

import tensorflow as tf

from laser_tf.ops import joint_batch, masking

SIGMA_MIN, SIGMA_MAX = 1e-4, 1e6


class Statistics(NamedTuple):
    """Moments of each task's targets; no function here lets a gradient flow into them.

    The papers keep the first moment mu and the second moment nu, and sigma^2 = nu - mu^2. Here the
    second moment is a central one, nu - mu^2 itself: where |mu| >> sigma that difference of two
    float32 is noise, and nu would stop moving as soon as a step of 3e-4 rounds to nothing.
    """

    mean: tf.Tensor  # float32 [K], mu
    variance: tf.Tensor  # float32 [K], nu - mu^2; not clipped


def sigma(statistics: Statistics) -> tf.Tensor:
    """The scale of each task's values, sqrt(nu - mu^2), clipped: float32 [K]."""
    # Clipped before the root, which must see nothing below zero.
    variance = tf.clip_by_value(statistics.variance, SIGMA_MIN**2, SIGMA_MAX**2)
    return tf.stop_gradient(tf.sqrt(variance))


def normalise(statistics: Statistics, values: tf.Tensor, tasks: tf.Tensor) -> tf.Tensor:
    """(v - mu) / sigma of each column's task; the gradient flows into `values`.

    Args:
      statistics: of K tasks.
      values: float32 [..., B], in units of reward.
      tasks: int32 [B], from 0 to K - 1.

    Returns:
      float32 [..., B].
    """
    mean, scale = _of_columns(statistics, tasks)
    return (values - mean) / scale


def unnormalise(statistics: Statistics, values: tf.Tensor, tasks: tf.Tensor) -> tf.Tensor:
    """Sigma n + mu of each column's task: the inverse of `normalise`, with its arguments."""
    mean, scale = _of_columns(statistics, tasks)
    return scale * values + mean


def _of_columns(statistics: Statistics, tasks: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The mean and the scale of each column's task, float32 [B] each."""
    mean = tf.stop_gradient(statistics.mean)
    return tf.gather(mean, tasks), tf.gather(sigma(statistics), tasks)


def update(
    statistics: Statistics,
    targets: tf.Tensor,
    mask: tf.Tensor,
    tasks: tf.Tensor,
    step: float = 3e-4,
) -> Statistics:
    """Moves each task's moments by one step toward those of its targets in the batch.

        mu' = mu + step (m - mu)
        nu' = nu + step (m_2 - nu),   m = mean of G, m_2 = mean of G^2 over the task's targets

    The papers' equations take one target G; a batch counts here as ONE such step, with the mean
    over the task's targets, so that neither T, B nor how many columns a task got changes how fast
    its statistics move. (A step per target, as in rlax, would be T B / K times as fast and
    overshoots where step T B > 1.) In central moments, with d = m - mu and s^2 = m_2 - m^2:

        nu' - mu'^2 = (1 - step) (nu - mu^2 + step d^2) + step s^2

    Tasks without a target in the batch keep their statistics bit for bit. So do tasks whose targets
    are not finite: the learner skips such an update, and the averages would never recover from it.
    With several learners, the batch is their joint one.

    Args:
      statistics: of K tasks.
      targets: float32 [T, B], in units of reward; no gradient flows into them.
      mask: bool [T, B]; targets where it is false are never read.
      tasks: int32 [B], from 0 to K - 1.
      step: of the moving averages, in (0, 1].

    Returns:
      The new statistics.
    """
    mean, variance = statistics
    mask = tf.cast(mask, tf.bool)
    columns = tf.one_hot(tasks, mean.shape[0], True, False, dtype=tf.bool)  # [B, K]

    # Distances from the old mean, then from the batch's: squares of small numbers.
    distances = masking.keep(mask, targets - tf.gather(mean, tasks))
    counts, shifts = joint_batch.total(
        (_sum_by_task(tf.cast(mask, tf.float32), columns), _sum_by_task(distances, columns))
    )
    at_least_one = tf.maximum(counts, 1.0)
    shift = shifts / at_least_one
    spreads = tf.square(masking.keep(mask, distances - tf.gather(shift, tasks)))
    spread = joint_batch.total(_sum_by_task(spreads, columns)) / at_least_one

    new_mean = mean + step * shift
    new_variance = (1 - step) * (variance + step * tf.square(shift)) + step * spread
    moves = (counts > 0) & tf.math.is_finite(new_mean) & tf.math.is_finite(new_variance)
    return Statistics(
        mean=tf.stop_gradient(tf.where(moves, new_mean, mean)),
        variance=tf.stop_gradient(tf.where(moves, new_variance, variance)),
    )


def _sum_by_task(x: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
    """[T, B] and which task each column belongs to, bool [B, K] -> [K]."""
    by_column = tf.reduce_sum(x, axis=0)[:, None]
    # Not a product with zeros and ones: a NaN of one task must not reach the others.
    return tf.reduce_sum(tf.where(columns, by_column, 0.0), axis=0)


def preserve_outputs(
    old: Statistics, new: Statistics, kernel: tf.Tensor, bias: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Rescales the last layer so that the unnormalised values stay what they were.

        w' = (sigma / sigma') w,    b' = (sigma b + mu - mu') / sigma'

    Args:
      old: the statistics that the layer was made for.
      new: those that it is to serve from now on.
      kernel: float32 [F, K].
      bias: float32 [K].

    Returns:
      The new kernel and bias.
    """
    old_scale, new_scale = sigma(old), sigma(new)
    new_bias = (old_scale * bias + (old.mean - new.mean)) / new_scale
    return kernel * (old_scale / new_scale), new_bias

"""Running mean and variance of observations that the learner has read."""

import tensorflow as tf

from laser_tf.ops import joint_batch

_MAX_COUNT = 1e6  # Vectors. Capping the count gives later vectors a minimum weight.


class RunningMoments(tf.Module):
    """Mean and variance of each entry of vectors; subclasses use them for normalisation.

    The moments are non-trainable variables that are saved and sent to actors with the weights. Only
    `update` changes them, and only losses call `update`.
    """

    def __init__(self, size: int, deviation: float = 1.0, prior_count: float = 0.0):
        """Creates moments of mean 0 and a standard deviation of `deviation`.

        The first update replaces the mean. The initial deviation counts as `prior_count` vectors;
        with 0 the first update replaces the deviation, too.
        """
        super().__init__()
        self._prior_count = prior_count
        self._mean = tf.Variable(tf.zeros([size]), trainable=False, name="mean")
        self._variance = tf.Variable(
            tf.fill([size], deviation**2), trainable=False, name="variance"
        )
        self._count = tf.Variable(0.0, trainable=False, name="count")

    @property
    def moments(self) -> tuple[tf.Variable, ...]:
        """Returns mean and variance, float32 [D] each."""
        return self._mean, self._variance

    def update(self, vectors: tf.Tensor, mask: tf.Tensor) -> None:
        """Adds the vectors, float32 [N, D], with a true `mask`, bool [N], to the moments.

        Non-finite vectors are ignored: the learner skips an update with a non-finite gradient, but
        the moments would never recover. With several learners the vectors of all learners are
        added. The update is equation 2.1 of Chan, Golub and LeVeque (1983):

            delta = m_B - m,   w = n_B / (n + n_B),   v = n_B / (n_0 + n + n_B)
            m' = m + w delta,  s' = (1 - v) s + v (s_B + (1 - w) delta^2)

        The n_0 vectors of the prior affect the variance only. They count as vectors with the
        initial variance around the current mean.
        """
        mask &= tf.reduce_all(tf.math.is_finite(vectors), axis=-1)
        kept = tf.where(mask[:, None], vectors, 0.0)
        count, summed = joint_batch.all_reduce_sum(
            (tf.reduce_sum(tf.cast(mask, tf.float32)), tf.reduce_sum(kept, axis=0))
        )
        batch_mean = summed / tf.maximum(count, 1.0)
        errors = tf.where(mask[:, None], tf.square(vectors - batch_mean), 0.0)
        batch_variance = joint_batch.all_reduce_sum(tf.reduce_sum(errors, axis=0)) / tf.maximum(
            count, 1.0
        )
        mean_weight = count / tf.maximum(self._count + count, 1.0)
        variance_weight = count / tf.maximum(self._prior_count + self._count + count, 1.0)
        delta = batch_mean - self._mean
        deviations = batch_variance + (1 - mean_weight) * tf.square(delta)
        mean = self._mean + mean_weight * delta
        variance = (1 - variance_weight) * self._variance + variance_weight * deviations
        # The square of a finite value may overflow. Such an entry would never recover, either.
        is_finite = tf.math.is_finite(mean) & tf.math.is_finite(variance)
        self._mean.assign(tf.where(is_finite, mean, self._mean))
        self._variance.assign(tf.where(is_finite, variance, self._variance))
        self._count.assign(tf.minimum(self._count + count, _MAX_COUNT))

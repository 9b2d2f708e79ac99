"""Running mean and variance of each entry of what the learner has seen."""

import tensorflow as tf

from laser_tf.ops import joint_batch

_MEMORY = 1e6  # vectors that the moments are the mean of at most: later ones always count


class RunningMoments(tf.Module):
    """Moments of vectors, entry by entry; subclasses normalise by them.

    They are variables beside the weights: saved with them, copied to actors with them, and moved
    by `update` alone, which nothing but a loss calls.
    """

    def __init__(self, size: int, deviation: float = 1.0, prior_count: float = 0.0):
        """Starts with mean 0, which the first update replaces, and a standard deviation.

        Args:
          size: D.
          deviation: of every entry.
          prior_count: how many vectors the deviation counts as; at 0 the first update replaces it.
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
        """What acting reads: mean and variance, float32 [D]."""
        return self._mean, self._variance

    def update(self, vectors: tf.Tensor, mask: tf.Tensor) -> None:
        """Adds vectors to the moments (Chan, Golub and LeVeque 1983, equation 2.1).

        Vectors that are not finite are left out: the learner skips such an update, and the moments
        would never recover from it. With several learners, those of all of them are added.

            delta = m_B - m,   w = n_B / (n + n_B),   v = n_B / (n_0 + n + n_B)
            m' = m + w delta,  s' = (1 - v) s + v (s_B + (1 - w) delta^2)

        The prior's n_0 vectors are in the variance alone: around the mean, whatever it is, they
        have the initial variance.

        Args:
          vectors: float32 [N, D].
          mask: bool [N]; where it is false, vectors are not read.
        """
        mask &= tf.reduce_all(tf.math.is_finite(vectors), axis=-1)
        kept = tf.where(mask[:, None], vectors, 0.0)
        count, summed = joint_batch.total(
            (tf.reduce_sum(tf.cast(mask, tf.float32)), tf.reduce_sum(kept, axis=0))
        )
        batch_mean = summed / tf.maximum(count, 1.0)
        errors = tf.where(mask[:, None], tf.square(vectors - batch_mean), 0.0)
        batch_variance = joint_batch.total(tf.reduce_sum(errors, axis=0)) / tf.maximum(count, 1.0)
        share = count / tf.maximum(self._count + count, 1.0)
        of_variance = count / tf.maximum(self._prior_count + self._count + count, 1.0)
        delta = batch_mean - self._mean
        of_batch = batch_variance + (1 - share) * tf.square(delta)
        mean = self._mean + share * delta
        variance = (1 - of_variance) * self._variance + of_variance * of_batch
        # A finite value may have a square that is not, from which no entry would recover, either.
        moves = tf.math.is_finite(mean) & tf.math.is_finite(variance)
        self._mean.assign(tf.where(moves, mean, self._mean))
        self._variance.assign(tf.where(moves, variance, self._variance))
        self._count.assign(tf.minimum(self._count + count, _MEMORY))

"""Vectors at unit scale: normalisation by running moments of what the learner has seen."""

import tensorflow as tf

from laser_tf.ops import joint_batch

_LARGEST = 10.0  # of a normalised entry: a rare spike must not blow the network up
_MEMORY = 1e6  # vectors that the moments are the mean of at most: later ones always count
_LEAST_VARIANCE = 1e-8


class VectorNormaliser(tf.Module):
    """Subtracts the mean and divides by the standard deviation of each entry.

    The moments are variables beside the weights: saved with them, copied to actors with them, and
    moved by `update` alone, which nothing but a loss calls.
    """

    def __init__(self, size: int):
        """Starts as the identity; `size` is D."""
        super().__init__()
        self._mean = tf.Variable(tf.zeros([size]), trainable=False, name="mean")
        self._variance = tf.Variable(tf.ones([size]), trainable=False, name="variance")
        self._count = tf.Variable(0.0, trainable=False, name="count")

    @property
    def moments(self) -> tuple[tf.Variable, ...]:
        """What `__call__` reads."""
        return self._mean, self._variance

    def __call__(self, vectors: tf.Tensor) -> tf.Tensor:
        """float32 [..., D] -> float32 [..., D], from -10 to 10."""
        scaled = (vectors - self._mean) * tf.math.rsqrt(self._variance + _LEAST_VARIANCE)
        return tf.clip_by_value(scaled, -_LARGEST, _LARGEST)

    def update(self, vectors: tf.Tensor, mask: tf.Tensor) -> None:
        """Adds vectors to the moments (Chan, Golub and LeVeque 1983, equation 2.1).

        Vectors that are not finite are left out: the learner skips such an update, and the moments
        would never recover from it. With several learners, those of all of them are added.

            delta = m_B - m,   w = n_B / (n + n_B)
            m' = m + w delta,  s' = (1 - w) s + w s_B + w (1 - w) delta^2

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
        delta = batch_mean - self._mean
        variance = (1 - share) * self._variance + share * batch_variance
        variance += share * (1 - share) * tf.square(delta)
        self._mean.assign_add(share * delta)
        self._variance.assign(variance)
        self._count.assign(tf.minimum(self._count + count, _MEMORY))

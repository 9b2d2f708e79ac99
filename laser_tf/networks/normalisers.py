"""Normalises observations by running moments of the observations that the learner has read."""

from collections.abc import Sequence

import tensorflow as tf

from laser_tf import kernels
from laser_tf.ops import joint_batch

# Later vectors do not change the moments. Moments that follow the policy change the policy, and a
# small learning rate cannot correct this: see docs/results/vectors.md.
MAX_COUNT = 5e5
_MAX_NORMALISED_NUMBER = 10.0  # Limits the effect of rare spikes on the network.
_VARIANCE_EPSILON = 1e-8
_MAX_NORMALISED_PIXEL = 5.0  # Burda et al. 2018.
# Min standard deviation, as a fraction of the range from black to white. Our choice: it limits the
# first change of a pixel that was constant so far.
_MIN_DEVIATION = 0.03
# The initial variance counts as `_PRIOR_IMAGES` images of this standard deviation, a fraction of
# the range from black to white. Our choice: the first images of a run are nearly equal. With their
# variance alone every changing pixel was at the limit, and a run could diverge
# (docs/results/atari.md, "Image normalisation"). Burda et al. collect random experience first.
_PRIOR_DEVIATION = 0.25
_PRIOR_IMAGES = 50
# Only every 53rd image of a batch updates the moments. The images of an unroll are nearly equal,
# and reading all of them would cost half of an update on a CPU. The stride is a prime, so that it
# does not always select the same batch entries.
_IMAGE_STRIDE = 53


class RunningMoments(tf.Module):
    """Mean and variance of each entry of vectors; subclasses use them for normalisation.

    The moments are non-trainable variables that are saved and sent to actors with the weights. Only
    `Agent.update_normalisers` changes them.
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

        After `MAX_COUNT` vectors the moments stay constant. Non-finite vectors are ignored: the
        learner skips an update with a non-finite gradient, but the moments would never recover.
        With several learners the vectors of all learners are added. The update is equation 2.1 of
        Chan, Golub and LeVeque (1983):

            delta = m_B - m,   w = n_B / (n + n_B),   v = n_B / (n_0 + n + n_B)
            m' = m + w delta,  s' = (1 - v) s + v (s_B + (1 - w) delta^2)

        The n_0 vectors of the prior affect the variance only. They count as vectors with the
        initial variance around the current mean.
        """
        # XLA cannot compile the sums over several replicas on CPUs.
        merge = _merged_by_xla if joint_batch.num_replicas() == 1 else _merged
        mean, variance, count = (
            tf.identity(variable) for variable in (self._mean, self._variance, self._count)
        )
        mean, variance, count = merge(vectors, mask, mean, variance, count, self._prior_count)
        self._mean.assign(mean)
        self._variance.assign(variance)
        self._count.assign(count)


def _merged(
    vectors: tf.Tensor,
    mask: tf.Tensor,
    mean: tf.Tensor,
    variance: tf.Tensor,
    count: tf.Tensor,
    prior_count: float,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns mean, variance and count with the vectors of a batch, see `RunningMoments.update`."""
    mask &= tf.reduce_all(tf.math.is_finite(vectors), axis=-1) & (count < MAX_COUNT)
    kept = tf.where(mask[:, None], vectors, 0.0)
    added, summed = joint_batch.all_reduce_sum(
        (tf.reduce_sum(tf.cast(mask, tf.float32)), tf.reduce_sum(kept, axis=0))
    )
    batch_mean = summed / tf.maximum(added, 1.0)
    errors = tf.where(mask[:, None], tf.square(vectors - batch_mean), 0.0)
    batch_variance = joint_batch.all_reduce_sum(tf.reduce_sum(errors, axis=0)) / tf.maximum(
        added, 1.0
    )
    mean_weight = added / tf.maximum(count + added, 1.0)
    variance_weight = added / tf.maximum(prior_count + count + added, 1.0)
    delta = batch_mean - mean
    deviations = batch_variance + (1 - mean_weight) * tf.square(delta)
    new_mean = mean + mean_weight * delta
    new_variance = (1 - variance_weight) * variance + variance_weight * deviations
    # The square of a finite value may overflow. Such an entry would never recover, either.
    is_finite = tf.math.is_finite(new_mean) & tf.math.is_finite(new_variance)
    return (
        tf.where(is_finite, new_mean, mean),
        tf.where(is_finite, new_variance, variance),
        count + added,
    )


_merged_by_xla = kernels.fused(_merged)


class VectorNormaliser(RunningMoments):
    """Normalises vectors by running moments; fresh moments only clip vectors."""

    def __call__(self, vectors: tf.Tensor) -> tf.Tensor:
        """Normalises vectors, float32 [..., D], to values in [-10, 10]."""
        scaled = (vectors - self._mean) * tf.math.rsqrt(self._variance + _VARIANCE_EPSILON)
        return tf.clip_by_value(scaled, -_MAX_NORMALISED_NUMBER, _MAX_NORMALISED_NUMBER)


class ImageNormaliser(RunningMoments):
    """Normalises each pixel and channel by its moments (Burda et al. 2018, section 2.4).

    Constant pixels, such as the background of a game, become 0. Without normalisation they add the
    same large term to the input of every unit. The gradient that all samples share can then push a
    unit to where its ReLU is inactive, or active, for all observations: docs/results/atari.md.
    """

    def __init__(self, shape: Sequence[int], image_dtype: tf.DType, dtype: str):
        """Creates moments of mean 0 and a standard deviation of a quarter of the pixel range.

        The range is 0 to 255 for an `image_dtype` of uint8, and about 0 to 1 for other dtypes.
        """
        white = 255.0 if image_dtype == tf.uint8 else 1.0
        super().__init__(
            tf.TensorShape(shape).num_elements(), _PRIOR_DEVIATION * white, _PRIOR_IMAGES
        )
        self._white = white
        self._shape = shape
        self._dtype = dtype

    def __call__(self, images: tf.Tensor) -> tf.Tensor:
        """Normalises images [N, H, W, C] to values in [-5, 5] of the compute dtype."""
        deviation = tf.maximum(tf.sqrt(self._variance), _MIN_DEVIATION * self._white)
        # Images are flattened to the shape of the moments.
        pixels = tf.reshape(images, [-1, self._mean.shape[0]])
        scaled = _normalised_pixels(pixels, tf.identity(self._mean), 1 / deviation, self._dtype)
        return tf.reshape(scaled, [-1, *self._shape])

    def update_from_images(self, images: tf.Tensor, mask: tf.Tensor) -> None:
        """Updates the moments from a subset of the images [N, H, W, C] with a true `mask` [N]."""
        chosen = tf.range(0, tf.shape(images)[0], _IMAGE_STRIDE)  # A slice would be slower.
        subset = tf.cast(tf.gather(images, chosen), tf.float32)
        self.update(tf.reshape(subset, [-1, self._mean.shape[0]]), tf.gather(mask, chosen))


@kernels.fused
def _normalised_pixels(
    pixels: tf.Tensor, mean: tf.Tensor, scale: tf.Tensor, dtype: str
) -> tf.Tensor:
    """Normalises pixels [N, D] by moments, float32 [D]."""
    scaled = (tf.cast(pixels, tf.float32) - mean) * scale
    clipped = tf.clip_by_value(scaled, -_MAX_NORMALISED_PIXEL, _MAX_NORMALISED_PIXEL)
    return tf.cast(clipped, dtype)

"""Normalises each pixel of an image by running moments (Burda et al. 2018, section 2.4).

Constant pixels, such as the background of a game, become 0. Without normalisation they add the
same large term to the input of every unit. The gradient that all samples share can then push a
unit to where its ReLU is inactive, or active, for all observations: docs/results/images.md.
"""

from collections.abc import Sequence

import tensorflow as tf

from laser_tf.networks import running_moments

_MAX_NORMALISED = 5.0  # Burda et al. 2018.
# Min standard deviation, as a fraction of the range from black to white. Our choice: it limits the
# first change of a pixel that was constant so far.
_MIN_DEVIATION = 0.03
# The initial variance counts as `_PRIOR_IMAGES` images of this standard deviation, a fraction of
# the range from black to white. Our choice: the first images of a run are nearly equal. With their
# variance alone every changing pixel was at the limit, and a run could diverge
# (docs/results/images.md, "How it begins"). Burda et al. collect random experience first.
_PRIOR_DEVIATION = 0.25
_PRIOR_IMAGES = 50
# Only every 53rd image of a batch updates the moments. The images of an unroll are nearly equal,
# and reading all of them would cost half of an update on a CPU. The stride is a prime, so that it
# does not always select the same batch entries.
_IMAGE_STRIDE = 53


class ImageNormaliser(running_moments.RunningMoments):
    """Subtracts the mean and divides by the standard deviation of each pixel and channel."""

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
        # float32 is faster here than bfloat16. Images are flattened to the shape of the moments.
        pixels = tf.cast(tf.reshape(images, [-1, self._mean.shape[0]]), tf.float32)
        scaled = (pixels - self._mean) * (1 / deviation)
        scaled = tf.clip_by_value(scaled, -_MAX_NORMALISED, _MAX_NORMALISED)
        return tf.cast(tf.reshape(scaled, [-1, *self._shape]), self._dtype)

    def observe(self, images: tf.Tensor, mask: tf.Tensor) -> None:
        """Updates the moments from a subset of the images [N, H, W, C] with a true `mask` [N]."""
        subset = tf.cast(images[::_IMAGE_STRIDE], tf.float32)
        self.update(tf.reshape(subset, [-1, self._mean.shape[0]]), mask[::_IMAGE_STRIDE])

"""Images whose every pixel is normalised by running moments (Burda et al. 2018, section 2.4).

What never changes, such as a game's background, becomes 0. As it is, it adds the same large term
to every unit's input, and gradients that all samples share move units to where ReLU is 0 for all
observations, or for none: docs/results/images.md.
"""

from collections.abc import Sequence

import tensorflow as tf

from laser_tf.networks import running_moments

_LARGEST = 5.0  # of a normalised pixel; Burda et al. 2018
# Standard deviation, of the range from black to white; ours: where nothing has moved so far, what
# moves there first must not outshine all else.
_LEAST_DEVIATION = 0.03
# The variance begins as that of so many images of this deviation, of the range from black to white;
# ours. By the first images' own, which hardly differ, all that moves was at the limits until they
# were many, and a run could diverge on that (docs/results/images.md, "How it begins"). Burda et al.
# let an agent act at random before.
_PRIOR_DEVIATION = 0.25
_PRIOR_IMAGES = 50
# Of a batch's images one in so many moves the moments: an unroll's hardly differ, and all would
# cost half an update on a CPU. A prime, so that they are not always the same batch entries'.
_EVERY = 53


class ImageNormaliser(running_moments.RunningMoments):
    """Subtracts the mean and divides by the standard deviation of each pixel and channel."""

    def __init__(self, shape: Sequence[int], image_dtype: tf.DType, dtype: str):
        """Until images are observed, their mean is 0 and their deviation a quarter of the range.

        Args:
          shape: H, W, C.
          image_dtype: of the images; bytes are from 0 to 255, others from about 0 to 1.
          dtype: compute dtype, "float32" or "bfloat16".
        """
        white = 255.0 if image_dtype == tf.uint8 else 1.0
        super().__init__(
            tf.TensorShape(shape).num_elements(), _PRIOR_DEVIATION * white, _PRIOR_IMAGES
        )
        self._white = white
        self._shape = shape
        self._dtype = dtype

    def __call__(self, images: tf.Tensor) -> tf.Tensor:
        """[N, H, W, C] -> compute dtype [N, H, W, C], from -5 to 5."""
        deviation = tf.maximum(tf.sqrt(self._variance), _LEAST_DEVIATION * self._white)
        # In float32, which is quicker here than bfloat16, and rows, as the moments are.
        rows = tf.cast(tf.reshape(images, [-1, self._mean.shape[0]]), tf.float32)
        scaled = tf.clip_by_value((rows - self._mean) * (1 / deviation), -_LARGEST, _LARGEST)
        return tf.cast(tf.reshape(scaled, [-1, *self._shape]), self._dtype)

    def observe(self, images: tf.Tensor, mask: tf.Tensor) -> None:
        """Moves the moments by some of a batch.

        Args:
          images: [N, H, W, C].
          mask: bool [N], which of them may be read.
        """
        some = tf.cast(images[::_EVERY], tf.float32)
        self.update(tf.reshape(some, [-1, self._mean.shape[0]]), mask[::_EVERY])

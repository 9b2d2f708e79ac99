"""Tests image normalisation against moments that NumPy computes."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.networks import image_normaliser

SHAPE = (4, 3, 2)
# The moments read the first, the middle and the last of these images.
N = 2 * image_normaliser._IMAGE_STRIDE + 1


def _normaliser(image_dtype=tf.uint8, dtype="float32") -> image_normaliser.ImageNormaliser:
    return image_normaliser.ImageNormaliser(SHAPE, image_dtype, dtype)


def _images(seed: int = 0, count: int = N) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, [count, *SHAPE]).astype(np.uint8)


class ImageNormaliserTest(parameterized.TestCase):
    def test_initial_deviation_is_quarter_of_range(self):
        images = _images()
        np.testing.assert_allclose(_normaliser()(images), images / (255 / 4), rtol=1e-6)
        fractions = (images / 255).astype(np.float32)
        np.testing.assert_allclose(_normaliser(tf.float32)(fractions), 4 * fractions, rtol=1e-6)

    def test_change_after_equal_images_is_below_limit(self):
        # The first images of an episode are equal.
        start = np.tile(_images(count=1), [N, 1, 1, 1])
        normaliser = _normaliser()
        normaliser.observe(tf.constant(start), tf.fill([N], True))
        self.assertLess(np.abs(normaliser(_images(seed=1))).max(), 4.5)
        self.assertLess(np.abs(normaliser(_images(seed=1))).mean(), 2.0)

    @parameterized.parameters((tf.uint8, 1), (tf.float32, 255))
    def test_pixels_are_normalised_by_moments_of_unmasked_images(self, image_dtype, white):
        normaliser, seen = _normaliser(image_dtype), []
        for seed in range(30):
            images = _images(seed).astype(image_dtype.as_numpy_dtype) / white
            images = images.astype(image_dtype.as_numpy_dtype)
            normaliser.observe(tf.constant(images), tf.constant(np.arange(N) != N // 2))
            seen += [images[0], images[-1]]  # The middle image is masked.
        seen = np.array(seen, np.float64)
        images = _images(seed=100).astype(np.float64) / white
        prior, count = image_normaliser._PRIOR_IMAGES, len(seen)
        assumed = (image_normaliser._PRIOR_DEVIATION * 255 / white) ** 2
        variance = (prior * assumed + count * seen.var(0)) / (prior + count)
        expected = (images - seen.mean(0)) / np.sqrt(variance)
        scaled = normaliser(tf.constant(images.astype(image_dtype.as_numpy_dtype)))
        self.assertLess(np.abs(expected).max(), 5)
        np.testing.assert_allclose(scaled, expected, rtol=1e-3, atol=1e-3)

    @parameterized.parameters("float32", "bfloat16")
    def test_constant_pixel_is_zero(self, dtype):
        images = np.tile(_images(count=1), [N, 1, 1, 1])
        normaliser = _normaliser(dtype=dtype)
        for _ in range(40):
            normaliser.observe(tf.constant(images), tf.fill([N], True))
        scaled = normaliser(images[:1])
        self.assertEqual(scaled.dtype.name, dtype)
        np.testing.assert_allclose(tf.cast(scaled, tf.float32), np.zeros([1, *SHAPE]), atol=1e-4)

    def test_first_change_of_constant_pixel_is_limited(self):
        normaliser = _normaliser()
        normaliser.observe(tf.fill([N, *SHAPE], tf.constant(100, tf.uint8)), tf.fill([N], True))
        normaliser.moments[1].assign(tf.zeros([24]))  # Removes the effect of the prior.
        shades = tf.constant(np.array([100, 104, 90, 255, 0], np.uint8))
        pixels = normaliser(tf.broadcast_to(shades[:, None, None, None], [5, *SHAPE]))[:, 0, 0, 0]
        least = 0.03 * 255
        np.testing.assert_allclose(pixels, [0, 4 / least, -10 / least, 5, -5], rtol=1e-4)

    def test_image_stride_visits_all_batch_entries(self):
        steps, entries = 20, 8  # The time dimension comes first.
        read = (np.arange(steps * entries) % entries)[:: image_normaliser._IMAGE_STRIDE]
        self.assertLen(set(read), len(read))

    def test_normalising_and_masked_images_keep_moments(self):
        normaliser = _normaliser()
        self.assertEmpty(normaliser.trainable_variables)
        before = [variable.numpy() for variable in normaliser.variables]
        normaliser(_images())
        normaliser.observe(tf.constant(_images()), tf.fill([N], False))
        for old, new in zip(before, normaliser.variables, strict=True):
            np.testing.assert_array_equal(old, new)


if __name__ == "__main__":
    absltest.main()

"""Tests running moments and the normalisation of vectors and images against NumPy."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.networks import normalisers

D, SHAPE = 3, (4, 3, 2)
STRIDE, PRIOR_IMAGES = 53, 50
N = 2 * STRIDE + 1  # The moments read the first, the middle and the last of these images.


def _batches(seed: int = 0):
    """Yields batches (vectors [N, D], mask [N]) of different sizes; masked vectors are NaN."""
    generator = np.random.default_rng(seed)
    for size in (40, 1, 7, 100):
        vectors = generator.normal([5.0, -300.0, 0.0], [2.0, 10.0, 1e-2], [size, D])
        mask = np.arange(size) % 3 == 0
        vectors[~mask] = np.nan
        yield vectors.astype(np.float32), mask


def _images(seed: int = 0, count: int = N) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, [count, *SHAPE]).astype(np.uint8)


class RunningMomentsTest(parameterized.TestCase):
    @parameterized.parameters((0.0, False), (0.0, True), (1.0, True), (50.0, False))
    def test_moments_equal_those_of_prior_and_unmasked_vectors(self, prior_count, jit_compile):
        moments, seen = normalisers.RunningMoments(D, 20.0, prior_count), []
        np.testing.assert_array_equal(moments.moments[1], [400.0] * D)
        update = tf.function(moments.update, jit_compile=jit_compile)
        for vectors, mask in _batches():
            update(tf.constant(vectors), tf.constant(mask))
            seen.append(vectors[mask])
            everything = np.concatenate(seen).astype(np.float64)
            mean, variance = moments.moments
            np.testing.assert_allclose(mean, everything.mean(0), rtol=1e-4, atol=1e-5)
            # The vectors of the prior are around the current mean.
            summed = prior_count * 20.0**2 + len(everything) * everything.var(0)
            expected = summed / (prior_count + len(everything))
            np.testing.assert_allclose(variance, expected, rtol=1e-3)

    @parameterized.parameters((0.0, False), (np.nan, True), (np.inf, True))
    def test_masked_or_nonfinite_vectors_keep_moments(self, value, mask):
        # The learner skips updates that are not finite, but moments would never recover.
        moments = normalisers.RunningMoments(D)
        moments.update(*next(_batches()))
        before = [variable.numpy() for variable in moments.variables]
        moments.update(tf.fill([4, D], np.float32(value)), tf.fill([4], mask))
        for old, new in zip(before, moments.variables, strict=True):
            np.testing.assert_array_equal(old, new)
        self.assertEmpty(moments.trainable_variables)
        self.assertLen(moments.variables, 3)

    def test_moments_are_constant_after_the_max_count(self):
        moments = normalisers.RunningMoments(D)
        vectors, mask = tf.random.stateless_normal([100, D], [1, 2]), tf.fill([100], True)
        moments._count.assign(normalisers.MAX_COUNT - 1)
        for is_updated in (True, False):
            before = [variable.numpy() for variable in moments.variables]
            moments.update(vectors + 1e6, mask)
            for old, new in zip(before, moments.variables, strict=True):
                self.assertEqual((old != new.numpy()).all(), is_updated)

    def test_overflowing_square_keeps_moments_of_its_entry(self):
        moments = normalisers.RunningMoments(D)
        moments.update(*next(_batches()))
        before = [variable.numpy() for variable in moments.moments]
        vectors = np.zeros([4, D], np.float32)
        vectors[0, 1] = np.finfo(np.float32).max  # Some environments use it for missing values.
        moments.update(tf.constant(vectors), tf.fill([4], True))
        for old, new in zip(before, moments.moments, strict=True):
            self.assertTrue(np.isfinite(new).all())
            np.testing.assert_array_equal(old == new, [False, True, False])


class VectorNormaliserTest(absltest.TestCase):
    def test_vectors_are_normalised_by_moments_and_clipped(self):
        normaliser = normalisers.VectorNormaliser(D)
        vectors = np.array([[0.5, -3.0, 9.0]], np.float32)
        np.testing.assert_allclose(normaliser(vectors), vectors)  # Fresh moments.
        for batch in _batches():
            normaliser.update(*batch)
        mean, variance = (moment.numpy() for moment in normaliser.moments)
        vectors, spike = next(_batches(1))[0][::3], np.float32([[1e9, -1e9, 0.0]])
        expected = (vectors - mean) / np.sqrt(variance)
        np.testing.assert_allclose(normaliser(vectors), expected, rtol=1e-3, atol=1e-4)
        np.testing.assert_array_equal(normaliser(spike)[0, :2], [10.0, -10.0])
        for old, new in zip((mean, variance), normaliser.moments, strict=True):
            np.testing.assert_array_equal(old, new)  # Only `update` changes moments.


class ImageNormaliserTest(parameterized.TestCase):
    @parameterized.parameters((tf.uint8, 1), (tf.float32, 255))
    def test_pixels_are_normalised_by_moments_of_unmasked_images(self, image_dtype, white):
        def cast(images):
            return tf.constant((images / white).astype(image_dtype.as_numpy_dtype))

        normaliser = normalisers.ImageNormaliser(SHAPE, image_dtype, "float32")
        # The initial deviation is a quarter of the range.
        np.testing.assert_allclose(normaliser(cast(_images())), _images() / (255 / 4), rtol=1e-6)
        seen = []
        for seed in range(30):
            images = cast(_images(seed))
            normaliser.update_from_images(images, tf.constant(np.arange(N) != N // 2))
            seen += [images[0], images[-1]]  # The middle image is masked.
        seen = np.array(seen, np.float64)
        before = [variable.numpy() for variable in normaliser.variables]
        images = cast(_images(seed=100))
        summed = PRIOR_IMAGES * (255 / 4 / white) ** 2 + len(seen) * seen.var(0)
        expected = (np.float64(images) - seen.mean(0)) / np.sqrt(
            summed / (PRIOR_IMAGES + len(seen))
        )
        self.assertLess(np.abs(expected).max(), 5)
        np.testing.assert_allclose(normaliser(images), expected, rtol=1e-3, atol=1e-3)
        for old, new in zip(before, normaliser.variables, strict=True):
            np.testing.assert_array_equal(old, new)  # Only updates change moments.

    @parameterized.parameters("float32", "bfloat16")
    def test_change_of_constant_pixel_is_limited(self, dtype):
        # The first images of an episode are equal.
        normaliser = normalisers.ImageNormaliser(SHAPE, tf.uint8, dtype)
        normaliser.update_from_images(
            tf.fill([N, *SHAPE], tf.constant(100, tf.uint8)), tf.fill([N], True)
        )
        shades = tf.constant(np.array([100, 104, 90, 255, 0], np.uint8))
        images = tf.broadcast_to(shades[:, None, None, None], [5, *SHAPE])
        deviation = 255 / 4 * np.sqrt(PRIOR_IMAGES / (PRIOR_IMAGES + 3))
        for least in (deviation, 0.03 * 255):
            scaled = normaliser(images)
            self.assertEqual(scaled.dtype.name, dtype)
            expected = np.clip([0, 4 / least, -10 / least, 155 / least, -100 / least], -5, 5)
            pixels = tf.cast(scaled[:, 0, 0, 0], tf.float32)
            np.testing.assert_allclose(pixels, expected, rtol=1e-2, atol=1e-4)
            normaliser.moments[1].assign(tf.zeros([24]))  # Removes the effect of the prior.


if __name__ == "__main__":
    absltest.main()

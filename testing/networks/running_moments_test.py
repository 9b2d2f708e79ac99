"""Tests running moments against NumPy."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.networks import running_moments

D = 3


def _batches(seed: int = 0):
    """Yields batches (vectors [N, D], mask [N]) of different sizes; masked vectors are NaN."""
    generator = np.random.default_rng(seed)
    for size in (40, 1, 7, 100):
        vectors = generator.normal([5.0, -300.0, 0.0], [2.0, 10.0, 1e-2], [size, D])
        mask = np.arange(size) % 3 == 0
        vectors[~mask] = np.nan
        yield vectors.astype(np.float32), mask


class RunningMomentsTest(parameterized.TestCase):
    @parameterized.parameters(False, True)
    def test_moments_equal_those_of_unmasked_vectors(self, jit_compile):
        moments, seen = running_moments.RunningMoments(D), []
        update = tf.function(moments.update, jit_compile=jit_compile)
        for vectors, mask in _batches():
            update(tf.constant(vectors), tf.constant(mask))
            seen.append(vectors[mask])
            everything = np.concatenate(seen).astype(np.float64)
            mean, variance = moments.moments
            np.testing.assert_allclose(mean, everything.mean(0), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(variance, everything.var(0), rtol=1e-3)

    @parameterized.parameters(1.0, 50.0)
    def test_prior_counts_as_vectors_around_mean(self, prior_count):
        moments, seen = running_moments.RunningMoments(D, 20.0, prior_count), []
        np.testing.assert_array_equal(moments.moments[1], [400.0] * D)
        for vectors, mask in _batches():
            moments.update(tf.constant(vectors), tf.constant(mask))
            seen.append(vectors[mask])
            everything = np.concatenate(seen).astype(np.float64)
            mean, variance = moments.moments
            np.testing.assert_allclose(mean, everything.mean(0), rtol=1e-4, atol=1e-5)
            summed = prior_count * 20.0**2 + len(everything) * everything.var(0)
            np.testing.assert_allclose(
                variance, summed / (prior_count + len(everything)), rtol=1e-3
            )

    def test_overflowing_square_keeps_moments_of_its_entry(self):
        moments = running_moments.RunningMoments(D)
        moments.update(*next(_batches()))
        before = [variable.numpy() for variable in moments.moments]
        vectors = np.zeros([4, D], np.float32)
        vectors[0, 1] = np.finfo(np.float32).max  # Some environments use it for missing values.
        moments.update(tf.constant(vectors), tf.fill([4], True))
        for old, new in zip(before, moments.moments, strict=True):
            self.assertTrue(np.isfinite(new).all())
            np.testing.assert_array_equal(old == new, [False, True, False])

    @parameterized.named_parameters(
        ("nothing", 0.0, False), ("nan", np.nan, True), ("inf", np.inf, True)
    )
    def test_masked_or_nonfinite_vectors_keep_moments(self, value, mask):
        # The learner skips updates that are not finite, but moments would never recover.
        moments = running_moments.RunningMoments(D)
        moments.update(*next(_batches()))
        before = [variable.numpy() for variable in moments.variables]
        moments.update(tf.fill([4, D], np.float32(value)), tf.fill([4], mask))
        for old, new in zip(before, moments.variables, strict=True):
            np.testing.assert_array_equal(old, new)

    def test_moments_are_variables_but_not_trainable(self):
        moments = running_moments.RunningMoments(D)
        self.assertEmpty(moments.trainable_variables)
        self.assertLen(moments.variables, 3)


if __name__ == "__main__":
    absltest.main()

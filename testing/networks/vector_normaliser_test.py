"""Running moments against NumPy's of everything that was read."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.networks import vector_normaliser

D = 3


def _batches(seed: int = 0):
    """Batches (vectors [N, D], mask [N]) of different sizes; masked entries are NaN."""
    generator = np.random.default_rng(seed)
    for size in (40, 1, 7, 100):
        vectors = generator.normal([5.0, -300.0, 0.0], [2.0, 10.0, 1e-2], [size, D])
        mask = np.arange(size) % 3 == 0
        vectors[~mask] = np.nan
        yield vectors.astype(np.float32), mask


class VectorNormaliserTest(parameterized.TestCase):
    def test_it_starts_as_the_identity(self):
        vectors = np.array([[0.5, -3.0, 9.0]], np.float32)
        np.testing.assert_allclose(vector_normaliser.VectorNormaliser(D)(vectors), vectors)

    @parameterized.parameters(False, True)
    def test_moments_are_those_of_all_that_was_not_masked(self, jit_compile):
        normaliser, seen = vector_normaliser.VectorNormaliser(D), []
        update = tf.function(normaliser.update, jit_compile=jit_compile)
        for vectors, mask in _batches():
            update(tf.constant(vectors), tf.constant(mask))
            seen.append(vectors[mask])
            everything = np.concatenate(seen).astype(np.float64)
            mean, variance = normaliser.moments
            np.testing.assert_allclose(mean, everything.mean(0), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(variance, everything.var(0), rtol=1e-3)
        scaled = normaliser(tf.constant(everything, tf.float32)).numpy()
        np.testing.assert_allclose(scaled.mean(0), np.zeros(D), atol=1e-3)
        np.testing.assert_allclose(scaled.std(0), np.ones(D), rtol=1e-2)

    def test_nothing_but_update_moves_the_moments(self):
        normaliser = vector_normaliser.VectorNormaliser(D)
        vectors, mask = next(_batches())
        normaliser.update(vectors, mask)
        before = [moment.numpy() for moment in normaliser.moments]
        normaliser(tf.random.normal([100, D], 50.0, 9.0))
        for old, new in zip(before, normaliser.moments, strict=True):
            np.testing.assert_array_equal(old, new)

    @parameterized.named_parameters(
        ("nothing", 0.0, False), ("nan", np.nan, True), ("inf", np.inf, True)
    )
    def test_what_is_masked_or_not_finite_moves_nothing(self, value, mask):
        # The learner skips an update that is not finite; moments would never recover from one.
        normaliser = vector_normaliser.VectorNormaliser(D)
        normaliser.update(*next(_batches()))
        before = [variable.numpy() for variable in normaliser.variables]
        normaliser.update(tf.fill([4, D], np.float32(value)), tf.fill([4], mask))
        for old, new in zip(before, normaliser.variables, strict=True):
            np.testing.assert_array_equal(old, new)

    def test_spikes_are_limited(self):
        normaliser = vector_normaliser.VectorNormaliser(D)
        np.testing.assert_array_equal(normaliser(tf.fill([1, D], 1e9)), np.full([1, D], 10.0))
        np.testing.assert_array_equal(normaliser(tf.fill([1, D], -1e9)), np.full([1, D], -10.0))

    def test_moments_are_saved_but_not_trained(self):
        normaliser = vector_normaliser.VectorNormaliser(D)
        self.assertEmpty(normaliser.trainable_variables)
        self.assertLen(normaliser.variables, 3)


if __name__ == "__main__":
    absltest.main()

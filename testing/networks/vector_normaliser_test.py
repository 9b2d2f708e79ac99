import numpy as np
import tensorflow as tf
from absl.testing import absltest

from laser_tf.networks import vector_normaliser

D = 3


def _vectors(seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.normal([5.0, -300.0, 0.0], [2.0, 10.0, 1e-2], [100, D]).astype(np.float32)


class VectorNormaliserTest(absltest.TestCase):
    def test_fresh_moments_keep_vectors(self):
        vectors = np.array([[0.5, -3.0, 9.0]], np.float32)
        np.testing.assert_allclose(vector_normaliser.VectorNormaliser(D)(vectors), vectors)

    def test_observed_vectors_have_unit_scale(self):
        normaliser, vectors = vector_normaliser.VectorNormaliser(D), _vectors()
        normaliser.update(vectors, np.full(100, True))
        scaled = normaliser(vectors).numpy()
        np.testing.assert_allclose(scaled.mean(0), np.zeros(D), atol=1e-3)
        np.testing.assert_allclose(scaled.std(0), np.ones(D), rtol=1e-2)

    def test_normalising_keeps_moments(self):
        normaliser = vector_normaliser.VectorNormaliser(D)
        normaliser.update(_vectors(), np.full(100, True))
        before = [moment.numpy() for moment in normaliser.moments]
        normaliser(tf.random.normal([100, D], 50.0, 9.0))
        for old, new in zip(before, normaliser.moments, strict=True):
            np.testing.assert_array_equal(old, new)

    def test_spikes_are_clipped(self):
        normaliser = vector_normaliser.VectorNormaliser(D)
        np.testing.assert_array_equal(normaliser(tf.fill([1, D], 1e9)), np.full([1, D], 10.0))
        np.testing.assert_array_equal(normaliser(tf.fill([1, D], -1e9)), np.full([1, D], -10.0))


if __name__ == "__main__":
    absltest.main()

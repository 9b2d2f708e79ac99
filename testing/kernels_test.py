"""Functions that XLA fuses to single kernels."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf import kernels


def _clusters(shape: list[int | None]) -> int:
    """Returns how many functions XLA must compile for an argument of a shape."""

    @kernels.fused
    def scale(values: tf.Tensor, factor: float) -> tf.Tensor:
        return tf.cast(values, tf.float32) * factor + 1.0

    spec = tf.TensorSpec(shape, tf.uint8)
    concrete = tf.function(lambda values: scale(values, 0.5), autograph=False)
    graph = concrete.get_concrete_function(spec).graph
    example = np.arange(256, dtype=np.uint8).reshape(4, 64)
    np.testing.assert_array_equal(scale(tf.constant(example), 0.5), example * 0.5 + 1)
    return sum("_XlaMustCompile" in operation.node_def.attr for operation in graph.get_operations())


class FusedTest(parameterized.TestCase):
    @parameterized.parameters(([4, 100_000], 1), ([4, 100], 0), ([None, 100_000], 0))
    def test_only_large_static_arguments_are_compiled(self, shape, expected):
        self.assertEqual(_clusters(shape), expected)

    def test_compiled_values_are_equal(self):
        images = np.random.default_rng(1).integers(0, 256, (40, 4_000)).astype(np.uint8)

        def affine(pixels: tf.Tensor, mean: tf.Tensor) -> tf.Tensor:
            return tf.cast((tf.cast(pixels, tf.float32) - mean) * 0.25, tf.bfloat16)

        mean = tf.range(4_000, dtype=tf.float32)
        plain, fused = (f(tf.constant(images), mean) for f in (affine, kernels.fused(affine)))
        np.testing.assert_array_equal(plain, fused)


if __name__ == "__main__":
    absltest.main()

"""Tests the grids, Q-values and dtypes of the PixelControl head."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.networks import pixel_control_head

A = 4


def _features(rows=6, size=16):
    return tf.constant(np.random.default_rng(0).normal(size=[rows, size]), tf.float32)


class PixelControlHeadTest(parameterized.TestCase):
    # Grids of 84x84 images with 4x4 cells, UNREAL (80x80), DMLab (72x96), MinAtar (10x10 with 2x2
    # cells) and tiny images.
    @parameterized.parameters(
        ((21, 21), 10 * 10),
        ((20, 20), 9 * 9),
        ((18, 24), 8 * 11),
        ((5, 5), 2 * 2),
        ((4, 4), 1),
        ((1, 3), 1),
    )
    def test_map_is_smallest_that_covers_grid(self, grid, map_cells):
        head = pixel_control_head.PixelControlHead(A, grid, "float32")
        q = head(_features())
        self.assertEqual((q.shape, q.dtype), ([6, *grid, A], tf.float32))
        # Dense 16 -> 9x9x32, deconvolutions 4x4x32 to 1 and to A channels.
        count = sum(int(np.prod(v.shape)) for v in head.trainable_variables)
        self.assertEqual(count, 17 * map_cells * 32 + (4 * 4 * 32 + 1) * (1 + A))

    @parameterized.parameters("float32", "bfloat16")
    def test_q_values_equal_reference(self, dtype):
        head = pixel_control_head.PixelControlHead(A, (5, 7), dtype)
        head(_features())
        for bias in (head._value.bias, head._advantage.bias):
            bias.assign(np.random.default_rng(1).normal(size=bias.shape))
        q = head(_features())
        spatial = tf.nn.relu(_features() @ head._dense.kernel)  # The initial bias is zero.
        spatial = tf.reshape(spatial, [6, 2, 3, 32])

        def deconvolution(layer):
            shape = [6, 6, 8, layer.kernel.shape[2]]
            outputs = tf.nn.conv2d_transpose(spatial, layer.kernel, shape, 2, "VALID")
            return (outputs + layer.bias)[:, :5, :7]

        value, advantage = deconvolution(head._value), deconvolution(head._advantage)
        expected = value + advantage - tf.reduce_mean(advantage, axis=-1, keepdims=True)
        tolerance = 1e-4 if dtype == "float32" else 0.05 * np.abs(expected).max()
        np.testing.assert_allclose(q, expected, atol=tolerance)
        compiled = tf.function(head, jit_compile=True)(_features())
        np.testing.assert_allclose(compiled, expected, atol=tolerance)
        self.assertEqual(q.dtype, tf.float32)
        self.assertTrue(all(v.dtype == tf.float32 for v in head.trainable_variables))

    def test_initial_q_values_have_scale_of_rewards(self):
        tf.keras.utils.set_random_seed(1)
        head = pixel_control_head.PixelControlHead(A, (20, 20), "float32")
        q = head(_features(rows=20, size=256)).numpy()
        self.assertBetween(q.std(), 0.3, 3.0)
        self.assertBetween(np.mean(q > 0), 0.3, 0.7)


if __name__ == "__main__":
    absltest.main()

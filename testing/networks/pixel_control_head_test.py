import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.networks import pixel_control_head

A = 4


def _features(rows=6, size=16):
    return tf.constant(np.random.default_rng(0).normal(size=[rows, size]), tf.float32)


def _map_channels(head):
    """Returns the units of the dense layer."""
    return max(v.shape[0] for v in head.trainable_variables if v.shape.rank == 1)


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
        head = pixel_control_head.PixelControlHead(A, grid)
        q = head(_features())
        self.assertEqual(q.shape, [6, *grid, A])
        self.assertEqual(q.dtype, tf.float32)
        self.assertEqual(_map_channels(head), map_cells * 32)

    def test_paper_grid_has_expected_parameter_count(self):
        head = pixel_control_head.PixelControlHead(A, (20, 20))
        head(_features(size=256))
        count = sum(int(np.prod(v.shape)) for v in head.trainable_variables)
        # Dense 256 -> 9x9x32, deconvolutions 4x4x32 to 1 and to A channels.
        self.assertEqual(count, 257 * 9 * 9 * 32 + (4 * 4 * 32 + 1) + (4 * 4 * 32 + 1) * A)

    def test_constant_advantage_keeps_q_values(self):
        # q = V + A - mean A, so a constant added to all advantages of a cell cancels.
        head = pixel_control_head.PixelControlHead(A, (5, 5))
        before = head(_features())
        advantage_bias = next(v for v in head.trainable_variables if v.shape == [A])
        advantage_bias.assign_add(tf.fill([A], 3.0))
        np.testing.assert_allclose(head(_features()), before, atol=1e-5)
        advantage_bias.assign_add([1.0, 0.0, 0.0, 0.0])
        np.testing.assert_allclose(
            head(_features()) - before,
            np.broadcast_to([0.75, -0.25, -0.25, -0.25], before.shape),
            atol=1e-5,
        )

    def test_mean_q_value_is_state_value(self):
        head = pixel_control_head.PixelControlHead(A, (5, 5))
        before = tf.reduce_mean(head(_features()), axis=-1)
        value_bias = next(v for v in head.trainable_variables if v.shape == [1])
        value_bias.assign([2.0])
        after = tf.reduce_mean(head(_features()), axis=-1)
        np.testing.assert_allclose(after - before, np.full(before.shape, 2.0), atol=1e-5)

    def test_initial_q_values_have_scale_of_rewards(self):
        tf.keras.utils.set_random_seed(1)
        q = pixel_control_head.PixelControlHead(A, (20, 20))(_features(rows=20, size=256)).numpy()
        self.assertBetween(q.std(), 0.3, 3.0)
        self.assertBetween(np.mean(q > 0), 0.3, 0.7)

    def test_every_variable_receives_gradient(self):
        head = pixel_control_head.PixelControlHead(A, (5, 5))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(head(_features())[..., 0]))
        for gradient in tape.gradient(loss, head.trainable_variables):
            self.assertGreater(np.abs(gradient).max(), 0.0)

    def test_bfloat16_is_close_to_float32(self):
        outputs = []
        for dtype in ("float32", "bfloat16"):
            tf.keras.utils.set_random_seed(1)
            head = pixel_control_head.PixelControlHead(A, (5, 7), dtype)
            outputs.append(head(_features()))
            self.assertEqual(outputs[-1].dtype, tf.float32)
            self.assertTrue(all(v.dtype == tf.float32 for v in head.trainable_variables))
        self.assertGreater(np.abs(outputs[0] - outputs[1]).max(), 0.0)
        np.testing.assert_allclose(*outputs, atol=0.05 * np.abs(outputs[0]).max())

    def test_compiled_q_values_equal_eager(self):
        head = pixel_control_head.PixelControlHead(A, (5, 7))
        expected = head(_features())
        np.testing.assert_allclose(
            tf.function(head, jit_compile=True)(_features()), expected, rtol=1e-4, atol=1e-5
        )


if __name__ == "__main__":
    absltest.main()

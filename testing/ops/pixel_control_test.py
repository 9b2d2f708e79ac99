import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import pixel_control
from testing import numpy_reference
from testing.ops import cases

T, B = 3, 2


class PixelRewardsTest(parameterized.TestCase):
    @parameterized.parameters(
        (6, 4, 3, 2), (6, 4, 1, 1), (7, 5, 2, 2), (7, 9, 1, 3), (8, 8, 2, 5), (11, 9, 1, 4)
    )
    def test_rewards_match_the_naive_loop(self, height, width, channels, cell):
        shape = [T + 1, B, height, width, channels]
        observations = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
        observations[0, 0], observations[1, 0] = 0, 255  # uint8 would wrap 0 - 255 around to 1.
        rewards = pixel_control.pixel_rewards(tf.constant(observations), cell)
        self.assertEqual(rewards.dtype, tf.float32)
        self.assertEqual(rewards.shape, [T, B, height // cell, width // cell])
        np.testing.assert_allclose(
            rewards, numpy_reference.pixel_rewards(observations, cell), rtol=1e-4, atol=1e-6
        )

    @parameterized.parameters((84, 5, 2), (11, 4, 1))
    def test_only_the_border_is_cropped(self, size, cell, margin):
        observations = np.zeros([2, 1, size, size, 1], np.uint8)
        observations[1, :, :margin] = observations[1, :, :, :margin] = 255
        end = margin + size // cell * cell
        observations[1, :, end:] = observations[1, :, :, end:] = 255
        rewards = pixel_control.pixel_rewards(tf.constant(observations), cell)
        np.testing.assert_array_equal(rewards, np.zeros_like(rewards))
        observations[1, 0, margin, margin] = observations[1, 0, end - 1, end - 1] = 255
        rewards = pixel_control.pixel_rewards(tf.constant(observations), cell).numpy()[0, 0]
        self.assertGreater(rewards[0, 0], 0.0)
        self.assertGreater(rewards[-1, -1], 0.0)
        self.assertEqual(np.count_nonzero(rewards), 2)


class PixelControlLossTest(absltest.TestCase):
    def test_targets_end_at_a_reset(self):
        # x_2 ends an episode, x_3 starts the next. There is one cell with two actions.
        q = np.arange(10, dtype=np.float32).reshape([5, 1, 1, 1, 2])
        loss = pixel_control.pixel_control_loss(
            q=tf.constant(q),
            actions=tf.constant([[0], [1], [0], [1]]),
            rewards=tf.constant([1.0, 2.0, np.nan, 3.0], shape=[4, 1, 1, 1]),
            is_transition=tf.constant([[True], [True], [False], [True]]),
            mask=tf.ones([4, 1], tf.bool),
            discount=0.5,
        )
        targets = [1.0 + 0.5 * 2.0, 2.0, None, 3.0 + 0.5 * 9.0]
        errors = (targets[0] - 0.0, targets[1] - 3.0, targets[3] - 7.0)
        np.testing.assert_allclose(loss, 0.5 * sum(error**2 for error in errors), rtol=1e-6)

    def test_default_discount_is_0_9_as_in_the_paper(self):
        inputs = cases.pixel_control_inputs()
        np.testing.assert_array_equal(
            pixel_control.pixel_control_loss(**inputs),
            pixel_control.pixel_control_loss(**inputs, discount=0.9),
        )


if __name__ == "__main__":
    absltest.main()

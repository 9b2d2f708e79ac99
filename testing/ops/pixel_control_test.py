import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from laser_tf.ops import pixel_control
from testing import numpy_reference

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


if __name__ == "__main__":
    absltest.main()

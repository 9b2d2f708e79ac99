"""Clipped rewards against their formulas."""

import numpy as np
from absl.testing import absltest

from laser_tf.ops import reward_clipping

REWARDS = np.array([-10.0, -1.0, -0.25, 0.0, 0.25, 1.0, 10.0], np.float32)


class RewardClippingTest(absltest.TestCase):
    def test_unit(self):
        expected = [-1, -1, -0.25, 0, 0.25, 1, 1]
        np.testing.assert_allclose(reward_clipping.unit(REWARDS), expected)

    def test_optimistic_asymmetric(self):
        expected = [(5.0 if reward > 0 else 0.3) * np.tanh(reward) for reward in REWARDS]
        np.testing.assert_allclose(
            reward_clipping.optimistic_asymmetric(REWARDS), expected, rtol=1e-6
        )

    def test_none(self):
        np.testing.assert_array_equal(reward_clipping.REWARD_CLIPS["none"](REWARDS), REWARDS)


if __name__ == "__main__":
    absltest.main()

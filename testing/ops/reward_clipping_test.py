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

    def test_soft_asymmetric(self):
        expected = [(5.0 if reward > 0 else 1.5) * np.tanh(reward / 5) for reward in REWARDS]
        np.testing.assert_allclose(reward_clipping.soft_asymmetric(REWARDS), expected, rtol=1e-6)

    def test_the_printed_clip_and_the_computed_one_differ(self):
        # A goal of 10 beside an apple of 1, as DMLab pays them.
        printed = reward_clipping.REWARD_CLIPS["optimistic_asymmetric"](np.array([1.0, 10.0]))
        computed = reward_clipping.REWARD_CLIPS["soft_asymmetric"](np.array([1.0, 10.0]))
        np.testing.assert_allclose(printed, [3.81, 5.0], atol=1e-2)
        np.testing.assert_allclose(computed, [0.99, 4.82], atol=1e-2)

    def test_none(self):
        np.testing.assert_array_equal(reward_clipping.REWARD_CLIPS["none"](REWARDS), REWARDS)


if __name__ == "__main__":
    absltest.main()

"""Tests of reward clipping."""

import numpy as np
from absl.testing import absltest

from laser_tf.ops import reward_clipping

REWARDS = np.array([-10.0, -1.0, -0.25, 0.0, 0.25, 1.0, 10.0], np.float32)


class RewardClippingTest(absltest.TestCase):
    def test_unit_clips_to_one(self):
        expected = [-1, -1, -0.25, 0, 0.25, 1, 1]
        np.testing.assert_allclose(reward_clipping.unit(REWARDS), expected)

    def test_optimistic_asymmetric_matches_the_formula(self):
        expected = [(5.0 if reward > 0 else 0.3) * np.tanh(reward) for reward in REWARDS]
        np.testing.assert_allclose(
            reward_clipping.optimistic_asymmetric(REWARDS), expected, rtol=1e-6
        )

    def test_soft_asymmetric_matches_the_formula(self):
        expected = [(5.0 if reward > 0 else 1.5) * np.tanh(reward / 5) for reward in REWARDS]
        np.testing.assert_allclose(reward_clipping.soft_asymmetric(REWARDS), expected, rtol=1e-6)

    def test_clips_of_paper_and_published_code_differ(self):
        # DMLab has rewards of 1 for an apple and 10 for a goal.
        paper = reward_clipping.REWARD_CLIPS["optimistic_asymmetric"](np.array([1.0, 10.0]))
        code = reward_clipping.REWARD_CLIPS["soft_asymmetric"](np.array([1.0, 10.0]))
        np.testing.assert_allclose(paper, [3.81, 5.0], atol=1e-2)
        np.testing.assert_allclose(code, [0.99, 4.82], atol=1e-2)

    def test_none_keeps_rewards(self):
        np.testing.assert_array_equal(reward_clipping.REWARD_CLIPS["none"](REWARDS), REWARDS)


if __name__ == "__main__":
    absltest.main()

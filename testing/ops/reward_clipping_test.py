import numpy as np
from absl.testing import absltest, parameterized

from laser_tf.ops import reward_clipping

REWARDS = np.array([-10.0, -1.0, -0.25, 0.0, 0.25, 1.0, 10.0], np.float32)


class RewardClippingTest(parameterized.TestCase):
    @parameterized.parameters(
        ("none", lambda r: r),
        ("unit", lambda r: max(-1, min(1, r))),
        ("optimistic_asymmetric", lambda r: (5.0 if r > 0 else 0.3) * np.tanh(r)),
        ("soft_asymmetric", lambda r: (5.0 if r > 0 else 1.5) * np.tanh(r / 5)),
    )
    def test_clip_matches_the_formula(self, name, formula):
        actual = reward_clipping.REWARD_CLIPS[name](REWARDS)
        np.testing.assert_allclose(actual, [formula(reward) for reward in REWARDS], rtol=1e-6)


if __name__ == "__main__":
    absltest.main()

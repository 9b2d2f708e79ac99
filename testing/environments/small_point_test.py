"""The small continuous task: its best and its random return are those that it states."""

import numpy as np
from absl.testing import absltest, parameterized

from testing.environments import small_point


def _returns(dimensions, episodes, choose):
    environment = small_point.Point(seed=3, dimensions=dimensions)
    returns = []
    for _ in range(episodes):
        time_step, total = environment.reset(), 0.0
        while not time_step.last():
            time_step = environment.step(choose(time_step.observation["to_target"]))
            total += time_step.reward
        returns.append(total)
    return returns


class SmallPointTest(parameterized.TestCase):
    @parameterized.parameters(1, 2)
    def test_straight_to_the_target_is_best(self, dimensions):
        straight = _returns(dimensions, 5, lambda way: np.clip(way / small_point.SPEED, -1.0, 1.0))
        np.testing.assert_allclose(straight, small_point.BEST_RETURN)
        slower = _returns(dimensions, 5, lambda way: np.clip(way / small_point.SPEED, -0.9, 0.9))
        self.assertLess(max(slower), small_point.BEST_RETURN - 0.2)

    def test_at_random(self):
        generator = np.random.default_rng(4)
        # Each coordinate is a sample: the standard error is 0.02.
        returns = _returns(300, 60, lambda way: generator.uniform(-1, 1, way.shape))
        self.assertAlmostEqual(np.mean(returns), small_point.RANDOM_RETURN, delta=0.06)


if __name__ == "__main__":
    absltest.main()

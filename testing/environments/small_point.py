"""A point that has to come to a target and stay: continuous control, learned in seconds.

Its returns are known by calculation, and the same in any number of dimensions.
"""

import dm_env
import numpy as np
from dm_env import specs

STEPS = 10  # of an episode, which then is cut
SPEED = 0.25  # of a step at most, in each dimension
# The best action is the largest until the target is reached: 0.25 + 0.5 + 0.75 + 7 * 1.
BEST_RETURN = 8.5


class Point(dm_env.Environment):
    """Each coordinate starts at 1 or -1 and moves by an action; at 0 is the target.

    The reward of a step is 1 less the mean distance that it leads to.
    """

    def __init__(self, seed=0, dimensions=2):
        self._random = np.random.default_rng(seed)
        self._dimensions = dimensions

    def observation_spec(self):
        return {"to_target": specs.Array([self._dimensions], np.float64)}

    def action_spec(self):
        return specs.BoundedArray([self._dimensions], np.float64, -1.0, 1.0, "action")

    def _show(self):
        return {"to_target": -self._place}

    def reset(self):
        self._place = self._random.choice([-1.0, 1.0], self._dimensions)
        self._left = STEPS
        return dm_env.restart(self._show())

    def step(self, action):
        self._place = self._place + SPEED * action
        self._left -= 1
        end = dm_env.transition if self._left else dm_env.truncation
        return end(1 - np.abs(self._place).mean(), self._show())

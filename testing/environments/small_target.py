"""An environment of vectors and continuous actions that is learned in seconds."""

import dm_env
import numpy as np
from dm_env import specs

LOW, HIGH = np.float32([-4.0, 0.0]), np.float32([1.0, 0.1])


class Target(dm_env.Environment):
    """Each observation is a point on another scale; the action is to name it within the bounds.

    An action costs its mean distance, in half ranges. Bounds are unlike in size and not about 0.
    """

    def __init__(self, seed=0, steps=5):
        self._random = np.random.default_rng(seed)
        self._steps = steps

    def observation_spec(self):
        return specs.Array([2], np.float32, "point")

    def action_spec(self):
        return specs.BoundedArray([2], np.float32, LOW, HIGH, "action")

    def _show(self):
        self._point = self._random.uniform(-0.8, 0.8, 2)
        return np.float32(100 + 30 * self._point)

    def reset(self):
        self._left = self._steps
        return dm_env.restart(self._show())

    def step(self, action):
        unit = (action - LOW) / (HIGH - LOW) * 2 - 1
        reward = -np.abs(unit - self._point).mean()
        self._left -= 1
        end = dm_env.transition if self._left else dm_env.truncation
        return end(reward, self._show())

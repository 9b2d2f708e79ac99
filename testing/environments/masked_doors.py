"""Environments with many actions, of which each step allows two."""

import dm_env
import gymnasium
import numpy as np
from dm_env import specs
from gymnasium import spaces

NUM_PAIRS, STEPS = 8, 3


class Doors(gymnasium.Env):
    """Opens a door at each of 3 steps; the observation names the side, -1 or 1.

    A random pair is allowed at each step: door i on the left, action i, and on the right, action
    8 + i. The last step has the reward of the episode, the fraction of doors on the named side. A
    forbidden action ends the episode with a return of 0. Networks do not see the allowed pair.
    """

    observation_space = spaces.Box(-1, 1, [1], np.float32)
    action_space = spaces.Discrete(2 * NUM_PAIRS)

    def __init__(self, masks=True, fault="", at=2, render_mode=None):
        """Sets whether infos have masks, and a faulty mask at step `at` of each episode."""
        self._masks, self._fault, self._at, self.render_mode = masks, fault, at, render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._steps, self._num_right = 0, 0
        return self._draw()

    def step(self, action):
        pair, is_right = int(action) % NUM_PAIRS, int(action) >= NUM_PAIRS
        is_forbidden = pair != self._pair
        self._num_right += is_right == (self._side > 0)
        self._steps += 1
        is_over = is_forbidden or self._steps == STEPS
        reward = self._num_right / STEPS if is_over and not is_forbidden else 0.0
        observation, info = self._draw()
        if is_over:
            info = {}
        return observation, reward, is_over, False, info

    def _draw(self):
        self._pair = int(self.np_random.integers(NUM_PAIRS))
        self._side = self.np_random.choice([-1, 1])
        mask = np.arange(2 * NUM_PAIRS) % NUM_PAIRS == self._pair
        if self._steps == self._at:
            match self._fault:
                case "shape":
                    mask = mask[1:]
                case "none allowed":
                    mask = np.zeros_like(mask)
                case "missing":
                    return np.float32([self._side]), {}
        return np.float32([self._side]), {"action_mask": mask} if self._masks else {}


gymnasium.register("Doors-v0", Doors)


class Choice(dm_env.Environment):
    """Observes a mask of integers; an episode has one step and a reward for allowed actions."""

    def __init__(self, size=4, dtype="int8", continuous=False, several=False, seed=0):
        self._mask_spec = specs.Array([size], np.dtype(dtype))
        self._continuous, self._several = continuous, several
        self._random = np.random.default_rng(seed)

    def observation_spec(self):
        return {"state": specs.Array([2], np.float32), "action_mask": self._mask_spec}

    def action_spec(self):
        if self._continuous:
            return specs.BoundedArray([4], np.float32, -1, 1)
        if self._several:
            return specs.BoundedArray([2], np.int32, 0, 1)
        return specs.DiscreteArray(4)

    def reset(self):
        return dm_env.restart(self._draw())

    def step(self, action):
        return dm_env.termination(float(self._mask[action]), self._draw())

    def _draw(self):
        self._mask = self._random.permuted(np.arange(4) < 2).astype(self._mask_spec.dtype)
        return {"state": np.zeros(2, np.float32), "action_mask": self._mask}

"""Environments whose episodes have given lengths."""

import numpy as np
from dm_env import specs

from laser_tf import types
from laser_tf.environments import base


class CountingEnvironments(base.BatchedEnvironment):
    """Shows the steps of each episode; the last length of each environment repeats.

    Args:
      lengths: Agent steps of the episodes of each environment; 0 means without end.
    """

    def __init__(self, *lengths):
        super().__init__(
            len(lengths),
            action_repeat=1,
            observation=specs.Array([], np.int32),
            action=specs.DiscreteArray(2),
        )
        self.tasks = ("counting",)
        self._lengths = [list(of_one) for of_one in lengths]

    def _reset(self):
        self._steps = np.zeros(self.num_envs, np.int32)
        return self._steps

    def _step(self, actions):
        is_first = np.zeros(self.num_envs, bool)
        for index, lengths in enumerate(self._lengths):
            if self._steps[index] == lengths[0] > 0:
                is_first[index] = True
                del lengths[: len(lengths) > 1]
        self._steps = np.where(is_first, 0, self._steps + 1)
        ones = np.ones(self.num_envs, np.float32)
        return types.EnvOutput(self._steps, ones, ones, is_first, actions)

    def render(self, index):
        raise base.NoPictureError("no picture")

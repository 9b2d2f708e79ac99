"""Environments whose episodes have given lengths."""

import numpy as np
from dm_env import specs

from laser_tf.environments import base


class CountingEnvironments(base.BatchedEnvironment):
    """Shows the steps of each episode; the last length of each environment repeats.

    Args:
      lengths: Agent steps of the episodes of each environment; 0 means without end.
    """

    def __init__(self, *lengths):
        super().__init__(
            len(lengths),
            observation=specs.Array([], np.int32),
            action=specs.DiscreteArray(2),
        )
        self.tasks = ("counting",)
        self._lengths = [list(of_one) for of_one in lengths]

    def _reset(self):
        self._steps = np.zeros(self.num_envs, np.int32)
        return self._steps

    def _step(self, actions, is_first):
        for index in np.flatnonzero(is_first):
            lengths = self._lengths[index]
            del lengths[: len(lengths) > 1]
        self._steps = np.where(is_first, 0, self._steps + 1).astype(np.int32)
        is_last = self._steps == [lengths[0] or -1 for lengths in self._lengths]
        ones = np.ones(self.num_envs)
        return base.Transition(self._steps, ones, ones, is_last)

    def render(self, index):
        raise base.RenderError("no picture")

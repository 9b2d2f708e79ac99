"""A PyEnvironment of TF-Agents, for where that is installed."""

import numpy as np
from tf_agents.environments import py_environment
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step


class Guess(py_environment.PyEnvironment):
    """Guess the number that is shown; every third step an episode ends, every other by a cut."""

    def __init__(self, batched=False):
        super().__init__()
        self._batched = batched
        self._episodes = 0
        self._random = np.random.default_rng(0)

    @property
    def batched(self):
        return self._batched

    @property
    def batch_size(self):
        return 4 if self._batched else None

    def seed(self, seed):
        self._random = np.random.default_rng(seed)

    def observation_spec(self):
        return {"shown": array_spec.BoundedArraySpec([3], np.float32, 0, 1, "shown")}

    def action_spec(self):
        return array_spec.BoundedArraySpec([], np.int32, 0, 2, "action")

    def _reset(self):
        self._steps = 0
        self._episodes += 1
        return time_step.restart(self._draw())

    def _draw(self):
        self._number = int(self._random.integers(3))
        return {"shown": np.eye(3, dtype=np.float32)[self._number]}

    def _step(self, action):
        if self._steps >= 3:
            return self.reset()
        reward = float(action == self._number)
        self._steps += 1
        if self._steps < 3:
            return time_step.transition(self._draw(), reward)
        if self._episodes % 2:
            return time_step.termination(self._draw(), reward)
        return time_step.truncation(self._draw(), reward)


def make():
    return Guess()


def make_batched():
    return Guess(batched=True)

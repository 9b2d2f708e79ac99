"""LASER on a custom environment: python -m examples.own_environment --workdir=runs/own."""

import os
import sys

import gymnasium
import numpy as np


class Corridor(gymnasium.Env):
    """A corridor with an exit on one side, which the observation contains."""

    observation_space = gymnasium.spaces.Box(-1, 1, [2], np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.exit, self.place = self.np_random.choice([-1, 1]), 0
        return np.array([0, self.exit], np.float32), {}

    def step(self, action):
        self.place += 2 * int(action) - 1
        is_out, observation = abs(self.place) == 3, [self.place / 3, self.exit]
        reward = float(is_out and self.place * self.exit > 0)
        return np.array(observation, np.float32), reward, is_out, False, {}


gymnasium.register("Corridor-v0", Corridor, max_episode_steps=20)

if __name__ == "__main__":  # Environment workers import this file, too.
    task = "--config.environment.task=examples.own_environment:Corridor-v0"
    command = ["-m", "launch.train", "--config=laser:gymnasium", task, *sys.argv[1:]]
    os.execv(sys.executable, [sys.executable, *command])

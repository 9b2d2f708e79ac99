"""Functions of users that return vector environments of gymnasium."""

import functools

import gymnasium
import numpy as np
from gymnasium import vector

from testing.environments import masked_doors, small_environments


class Dated(small_environments.Timed):
    """A `Timed` whose observation is a dict, with the number of the episode."""

    observation_space = gymnasium.spaces.Dict(
        steps=gymnasium.spaces.Box(0, 1e9, [2], np.float64),
        kind=gymnasium.spaces.Discrete(3, start=4),
    )

    def _show(self, observation):
        return {"steps": observation[1:], "kind": np.int64(4 + observation[1] % 3)}

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        return self._show(observation), info

    def step(self, action):
        observation, *results = super().step(action)
        return self._show(observation), *results


# Steps until termination and until truncation of environment i.
LENGTHS = ({"ends": 3}, {"cut": 2}, {"ends": 4, "cut": 4}, {})


def make_timed(num_envs, mode="NextStep"):
    return vector.SyncVectorEnv(
        [functools.partial(Dated, **LENGTHS[index]) for index in range(num_envs)],
        autoreset_mode=mode,
    )


def make_corridors(num_envs, mode="NextStep", max_steps=6):
    return vector.SyncVectorEnv(
        [functools.partial(small_environments.Corridor, max_steps=max_steps)] * num_envs,
        autoreset_mode=mode,
    )


def make_pair(num_envs):
    return make_corridors(2)


def make():
    return make_corridors(2)


def make_always_one(num_envs):
    return make_corridors(1)


class Sized(small_environments.Corridor):
    def __init__(self, size):
        super().__init__()
        self.observation_space = gymnasium.spaces.Box(-1, 1, [size], np.float32)

    def _show(self):
        return np.zeros(self.observation_space.shape, np.float32)


def make_sized(num_envs):
    return vector.SyncVectorEnv([functools.partial(Sized, num_envs)] * num_envs)


def make_single(num_envs):
    return small_environments.Corridor()


def make_other_spaces(num_envs):
    environment = make_corridors(num_envs)
    environment.observation_space = gymnasium.spaces.Box(-1, 1, [num_envs, 3], np.float32)
    return environment


def make_breaking(num_envs, seed, **arguments):
    """Environment 1 fails in its first episode."""
    breaking = functools.partial(small_environments.Breaking, bad_seed=seed + 1, **arguments)
    return vector.SyncVectorEnv([breaking] * num_envs)


def make_doors(num_envs, mode="NextStep"):
    return vector.SyncVectorEnv([masked_doors.Doors] * num_envs, autoreset_mode=mode)

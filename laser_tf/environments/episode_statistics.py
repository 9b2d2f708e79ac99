"""Returns and lengths of finished episodes, read off an environment's outputs."""

from typing import NamedTuple

import numpy as np

from laser_tf import types


class Episode(NamedTuple):
    """A finished episode."""

    environment: int  # index in the batch
    episode_return: float  # sum of raw rewards
    length: int  # agent steps


class EpisodeTracker:
    """Sums rewards per game; an episode has ended when the next one's first row arrives."""

    def __init__(self, num_envs: int):
        """Expects an environment's first output next."""
        self._returns = np.zeros(num_envs, np.float64)
        self._lengths = np.zeros(num_envs, int)

    def update(self, env_output: types.EnvOutput) -> list[Episode]:
        """Takes the next row [N] and returns the episodes that it shows to be over."""
        over = np.flatnonzero(env_output.is_first & (self._lengths > 0))
        finished = [
            Episode(int(index), float(self._returns[index]), int(self._lengths[index]))
            for index in over
        ]
        self._returns = np.where(env_output.is_first, 0.0, self._returns + env_output.reward)
        self._lengths = np.where(env_output.is_first, 0, self._lengths + 1)
        return finished

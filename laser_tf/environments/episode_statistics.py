"""Returns and lengths of finished episodes, read off an environment's outputs."""

from typing import NamedTuple

import numpy as np

from laser_tf import types
from laser_tf.environments import base

MIN_LENGTH_LIMIT = 100_000  # agent steps


class Episode(NamedTuple):
    """A finished episode."""

    environment: int  # index in the batch
    task: int  # index of its task
    episode_return: float  # sum of raw rewards, before any scaling
    length: int  # agent steps


def length_limit(max_steps_per_episode: int) -> int:
    """Returns the agent steps after which an episode is unlikely to end.

    Args:
      max_steps_per_episode: Agent steps of the longest episode; 0 if unknown.
    """
    return max(MIN_LENGTH_LIMIT, max_steps_per_episode)


class EpisodeTracker:
    """Sums rewards per game; an episode has ended when the next one's first step arrives."""

    def __init__(self, environment: base.BatchedEnvironment):
        """Expects the environment's first output next."""
        self._task_ids = environment.task_ids
        self._scales = environment.reward_scales
        self._returns = np.zeros(environment.num_envs, np.float64)
        self._lengths = np.zeros(environment.num_envs, int)

    @property
    def lengths(self) -> np.ndarray:
        """Agent steps of each environment's unfinished episode, [N]."""
        return self._lengths

    def update(self, env_output: types.EnvOutput) -> list[Episode]:
        """Takes the next step [N] and returns the episodes that it shows to be over."""
        over = np.flatnonzero(env_output.is_first & (self._lengths > 0))
        finished = [
            Episode(
                int(index),
                int(self._task_ids[index]),
                float(self._returns[index] / self._scales[index]),
                int(self._lengths[index]),
            )
            for index in over
        ]
        self._returns = np.where(env_output.is_first, 0.0, self._returns + env_output.reward)
        self._lengths = np.where(env_output.is_first, 0, self._lengths + 1)
        return finished

"""Returns and lengths of finished episodes."""

from typing import NamedTuple

import numpy as np

from laser_tf import types
from laser_tf.environments import base

MIN_LENGTH_LIMIT = 100_000  # Agent steps.


class Episode(NamedTuple):
    """A finished episode."""

    environment: int  # Index in the batch; its seed is that of the first environment plus this.
    task: int  # Index of the task.
    first_step: int  # Agent steps of the environment before the episode.
    episode_return: float  # Sum of raw rewards, before any scaling.
    length: int  # Agent steps.


def length_limit(max_steps_per_episode: int) -> int:
    """Returns the agent steps after which an episode is unlikely to end; the limit 0 is unknown."""
    return max(MIN_LENGTH_LIMIT, max_steps_per_episode)


class EpisodeTracker:
    """Sums the rewards of episodes; an episode has ended when the next one starts."""

    def __init__(self, environment: base.BatchedEnvironment):
        self._task_ids = environment.task_ids
        self._scales = environment.reward_scales
        self._returns = np.zeros(environment.num_envs, np.float64)
        self.lengths = np.zeros(environment.num_envs, int)  # Agent steps of unfinished episodes.
        self._step = -1  # Index of the newest step.

    def update(self, env_output: types.EnvOutput) -> list[Episode]:
        """Adds the next step [N] and returns the episodes that have ended before it."""
        finished = [
            Episode(
                int(index),
                int(self._task_ids[index]),
                self._step - int(self.lengths[index]),
                float(self._returns[index] / self._scales[index]),
                int(self.lengths[index]),
            )
            for index in np.flatnonzero(env_output.is_first & (self.lengths > 0))
        ]
        self._returns = np.where(env_output.is_first, 0.0, self._returns + env_output.reward)
        self.lengths = np.where(env_output.is_first, 0, self.lengths + 1)
        self._step += 1
        return finished

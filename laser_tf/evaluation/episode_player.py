"""Plays a fixed number of episodes and remembers how, so that one can be played again."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from laser_tf import types
from laser_tf.environments import base, episode_statistics, faults

MAX_ENVIRONMENTS = 32  # of all tasks together, where they are fewer than that


class Game(NamedTuple):
    """One episode and where it lies in its environment's stream of steps."""

    environment: int  # its index; its seed is the first environment's plus this
    task: int  # index of its task
    first_step: int  # agent steps of that environment before the episode
    episode_return: float  # raw
    length: int  # agent steps


class EpisodePlayer:
    """Plays a batch of environments with any policy."""

    def __init__(
        self,
        environment: base.BatchedEnvironment,
        policy: Callable[[types.EnvOutput], np.ndarray],
        max_steps_per_episode: int = 0,
    ):
        """Creates the player.

        Args:
          environment: Environments to step.
          policy: Maps each time step to actions, int32 [N].
          max_steps_per_episode: Agent steps of the longest episode; 0 if unknown.
        """
        self._environment = environment
        self._policy = policy
        self._length_limit = episode_statistics.length_limit(max_steps_per_episode)
        self.actions: list[np.ndarray] = []  # int32 [N] a step

    def play(
        self, episodes: int, on_step: Callable[[Sequence[Game], int], None] = lambda *_: None
    ) -> list[Game]:
        """Plays so many episodes of each task, at least 1.

        Each environment plays a fixed share: taking whichever episodes end first would favour short
        ones.

        Args:
          episodes: of each task.
          on_step: called at each step with the episodes so far and the agent steps of all
            environments together.

        Raises:
          EnvironmentFailedError: If an episode does not end.
        """
        num_tasks = len(self._environment.tasks)
        per_task = self._environment.num_envs // num_tasks
        quotas = [len(range(index, episodes, per_task)) for index in range(per_task)] * num_tasks
        tracker = episode_statistics.EpisodeTracker(self._environment)
        env_output = self._environment.reset()
        games = []
        while len(games) < episodes * num_tasks:
            for episode in tracker.update(env_output):
                if quotas[episode.environment]:
                    quotas[episode.environment] -= 1
                    games.append(
                        Game(
                            episode.environment,
                            episode.task,
                            len(self.actions) - 1 - episode.length,
                            episode.episode_return,
                            episode.length,
                        )
                    )
            self._check_lengths(tracker.lengths * np.sign(quotas))
            on_step(games, len(self.actions) * self._environment.num_envs)
            action = self._policy(env_output)
            self.actions.append(action)
            env_output = self._environment.step(action)
        return games

    def _check_lengths(self, lengths: np.ndarray) -> None:
        """Raises EnvironmentFailedError for an episode that is too long, from all lengths [N]."""
        longest = int(np.argmax(lengths))
        if lengths[longest] > self._length_limit:
            task = self._environment.tasks[self._environment.task_ids[longest]]
            raise faults.EnvironmentFailedError(
                f"an episode of {task} did not end within {self._length_limit:,} agent steps. Set "
                "environment.max_frames_per_episode, or have the environment end its episodes"
            )


def environments_at_once(episodes: int, num_tasks: int) -> int:
    """How many environments of each task play so many episodes of it."""
    return min(episodes, max(1, MAX_ENVIRONMENTS // num_tasks))


def by_task(games: Sequence[Game]) -> list[list[Game]]:
    """The games of each task, in the tasks' order."""
    number = 1 + max(game.task for game in games)
    return [[game for game in games if game.task == task] for task in range(number)]

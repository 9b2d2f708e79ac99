"""Environments that step one by one, and the repetition of actions."""

import abc
from collections.abc import Callable
from typing import Any

import numpy as np

from laser_tf.environments import base


class SerialEnvironment(base.BatchedEnvironment):
    """N environments of which each steps by itself, one after the other or in threads."""

    def _reset(self) -> Any:
        for _ in self._map(self._start_episode, range(self.num_envs)):
            pass
        return self._observations()

    def _step(self, actions: np.ndarray, is_first: np.ndarray) -> base.Transition:
        def advance(index: int, action: int, starts: bool) -> tuple[float, float, bool]:
            if starts:
                self._start_episode(index)
                return 0.0, 1.0, False
            return self._take_action(index, action)

        results = self._map(advance, range(self.num_envs), actions.tolist(), is_first.tolist())
        rewards, discounts, ends = map(np.array, zip(*results, strict=True))
        return base.Transition(self._observations(), rewards, discounts, ends)

    _map: Callable = map  # Replaced by the `map` of a thread pool.

    @abc.abstractmethod
    def _start_episode(self, index: int) -> None:
        """Starts the next episode of one environment."""

    def _take_action(self, index: int, action: int) -> tuple[float, float, bool]:
        """Repeats an action, see `repeat_action`; for an engine that can do this by itself."""
        return repeat_action(lambda: self._take_frame(index, action), self.action_repeat)

    def _take_frame(self, index: int, action: int) -> tuple[float, float, bool]:
        """Returns reward, discount, and whether the episode has ended, after one env frame."""
        raise NotImplementedError

    @abc.abstractmethod
    def _observations(self) -> Any:
        """Returns the observations of all environments now, a nest of arrays [N, ...]."""


def repeat_action(
    take_frame: Callable[[], tuple[float, float, bool]], times: int
) -> tuple[float, float, bool]:
    """Repeats an action until the episode ends.

    Args:
      take_frame: Takes the action for one env frame and returns reward, discount, and whether the
        episode has ended.
      times: Env frames of an agent step.

    Returns:
      The sum of rewards, the product of discounts, and whether the episode has ended.
    """
    total, product = 0.0, 1.0
    for _ in range(times):
        reward, discount, is_last = take_frame()
        total += reward
        product *= discount
        if is_last:
            break
    return total, product, is_last

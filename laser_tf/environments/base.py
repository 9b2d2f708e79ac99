"""The interface of all environments: N games that step together."""

import abc

import numpy as np
from dm_env import specs

from laser_tf import types


class BatchedEnvironment(abc.ABC):
    """N games of one task, stepped together, each starting again by itself.

    Rows follow the time convention of `laser_tf.types`. The step after a game's end ignores its
    action and returns the next game's first observation with `is_first`, reward 0 and discount 1.

    Game i depends on `seed + i` and its own actions only, so that a batch of one with that seed
    plays it again. Returned arrays are the caller's to keep.
    """

    def __init__(self, num_envs: int, action_repeat: int):
        """Keeps the number of games and the env frames of an agent step."""
        self.num_envs = num_envs
        self.action_repeat = action_repeat

    @abc.abstractmethod
    def observation_spec(self) -> specs.BoundedArray:
        """Of a single game's single frame: uint8 [H, W, C]."""

    @abc.abstractmethod
    def action_spec(self) -> specs.DiscreteArray:
        """Of a single game."""

    @abc.abstractmethod
    def reset(self) -> types.EnvOutput:
        """Starts all games: NumPy arrays [N, ...] with `is_first` everywhere."""

    def step(self, actions: np.ndarray) -> types.EnvOutput:
        """Takes an action in each game.

        Args:
          actions: integers [N], each in [0, num_values).

        Returns:
          NumPy arrays [N, ...].

        Raises:
          ValueError: for actions of another shape, type or range. (ALE would hang.)
        """
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or not np.issubdtype(actions.dtype, np.integer):
            raise ValueError(
                f"actions are {actions.dtype}{list(actions.shape)}: pass {self.num_envs} integers"
            )
        num_actions = self.action_spec().num_values
        if actions.min() < 0 or actions.max() >= num_actions:
            raise ValueError(
                f"actions are {actions.tolist()}: use values from 0 to {num_actions - 1}"
            )
        return self._step(actions.astype(np.int32))

    @abc.abstractmethod
    def _step(self, actions: np.ndarray) -> types.EnvOutput:
        """Steps with valid actions, int32 [N]."""

    @abc.abstractmethod
    def render(self, index: int) -> np.ndarray:
        """A picture of one game now: uint8 [height, width, 3], RGB.

        Raises:
          RuntimeError: if the environment was made without `rendering=True`.
        """

    def close(self) -> None:
        """Frees what the games hold."""


def first_output(observation: np.ndarray) -> types.EnvOutput:
    """What `reset` returns with observations [N, H, W, C]."""
    num_envs = observation.shape[0]
    return types.EnvOutput(
        observation=observation,
        reward=np.zeros(num_envs, np.float32),
        discount=np.ones(num_envs, np.float32),
        is_first=np.ones(num_envs, bool),
        previous_action=np.zeros(num_envs, np.int32),
    )

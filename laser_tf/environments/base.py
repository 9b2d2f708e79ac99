"""The interface of all environments: N games that step together."""

import abc

import numpy as np
from dm_env import specs

from laser_tf import types


class BatchedEnvironment(abc.ABC):
    """N games of one task, stepped together, each starting again by itself.

    Rows follow the time convention of `laser_tf.types`. The step after a game's end ignores its
    action and returns the next game's first observation with `is_first`, reward 0 and discount 1;
    `previous_action` is always what the environment was sent.

    Game i depends on `seed + i` and its own actions only, so that a batch of one with that seed
    plays it again. Returned arrays are the caller's to keep.

    Attributes:
      num_envs: N.
      action_repeat: env frames an agent step.
      instruction_length: L, words of the text that a game shows beside its frames at most; 0: none.
      tasks: names of the tasks that its games play, usually one.
      task_ids: int32 [N], each game's index in `tasks`.
      reward_scales: float32 [N], what each game's rewards were multiplied by.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        action_repeat: int,
        frame_shape: tuple[int, ...],
        num_actions: int,
        instruction_length: int = 0,
    ):
        """Takes what the specs say; `frame_shape` is [H, W, C]."""
        self.num_envs = num_envs
        self.action_repeat = action_repeat
        self.instruction_length = instruction_length
        self.tasks: tuple[str, ...] = ("",)
        self.task_ids = np.zeros(num_envs, np.int32)
        self.reward_scales = np.ones(num_envs, np.float32)
        self._frame_shape = frame_shape
        self._num_actions = num_actions
        self._started = False

    def observation_spec(self) -> specs.BoundedArray:
        """Of a single game's single frame: uint8 [H, W, C]."""
        return specs.BoundedArray(self._frame_shape, np.uint8, 0, 255, "observation")

    def action_spec(self) -> specs.DiscreteArray:
        """Of a single game: int32 [], from 0 to num_values - 1."""
        return specs.DiscreteArray(self._num_actions, name="action")

    def spec(self) -> types.EnvironmentSpec:
        """What an agent that plays these games must fit."""
        return types.EnvironmentSpec(
            self._frame_shape, self._num_actions, len(self.tasks), self.instruction_length
        )

    def reset(self) -> types.EnvOutput:
        """Starts a new episode in every game: NumPy arrays [N, ...] with `is_first` everywhere.

        The first call seeds the games. A later one lets their random streams run on.
        """
        observation = self._reset()
        self._started = True
        instruction = self._instruction() if self.instruction_length else ()
        return types.EnvOutput(
            observation=observation,
            reward=np.zeros(self.num_envs, np.float32),
            discount=np.ones(self.num_envs, np.float32),
            is_first=np.ones(self.num_envs, bool),
            previous_action=np.zeros(self.num_envs, np.int32),
            instruction=instruction,
        )

    def step(self, actions: np.ndarray) -> types.EnvOutput:
        """Takes an action in each game.

        Args:
          actions: integers [N], each in [0, num_values).

        Returns:
          NumPy arrays [N, ...].

        Raises:
          RuntimeError: before the first `reset`.
          ValueError: for actions of another shape, type or range. (ALE would hang.)
        """
        if not self._started:
            raise RuntimeError("no game is going on: call reset() before step()")
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or not np.issubdtype(actions.dtype, np.integer):
            raise ValueError(
                f"actions are {actions.dtype}{list(actions.shape)}: pass {self.num_envs} integers"
            )
        if actions.min() < 0 or actions.max() >= self._num_actions:
            raise ValueError(
                f"actions are {actions.tolist()}: use values from 0 to {self._num_actions - 1}"
            )
        return self._step(actions.astype(np.int32))

    @abc.abstractmethod
    def _reset(self) -> np.ndarray:
        """Starts all games and returns their observations, uint8 [N, H, W, C]."""

    def _instruction(self) -> np.ndarray:
        """The games' texts now, int32 [N, L]; asked for where `instruction_length` is above 0."""
        raise NotImplementedError

    @abc.abstractmethod
    def _step(self, actions: np.ndarray) -> types.EnvOutput:
        """Steps with valid actions, int32 [N], that nobody else holds."""

    @abc.abstractmethod
    def render(self, index: int) -> np.ndarray:
        """A picture of one game now: uint8 [height, width, 3], RGB.

        Raises:
          RuntimeError: for an Atari game that was made without `rendering=True`.
        """

    def close(self) -> None:
        """Frees what the games hold: the environment is of no more use."""
        self._started = False

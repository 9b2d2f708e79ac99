"""The interface of all environments: N games that step together."""

import abc
import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import tree
from dm_env import specs

from laser_tf import types
from laser_tf.environments import faults


class BatchedEnvironment(abc.ABC):
    """N games of one task, stepped together, each starting again by itself.

    Rows follow the time convention of `laser_tf.types`. The step after a game's end ignores its
    action and returns the next game's first observation with `is_first`, reward 0 and discount 1;
    `previous_action` is always what the environment was sent.

    Game i depends on `seed + i` and its own actions only, so that a batch of one with that seed
    plays it again. Returned arrays are the caller's to keep.

    A reward, discount or float of an observation that is not finite never leaves: the row gets
    reward 0, discount 1 and the observation before, and the next row has `is_first`, as after a
    time limit. A suite starts a new episode there if it looks at `_over`; in others the game goes
    on from where it is.

    Attributes:
      num_envs: N.
      action_repeat: env frames an agent step.
      instruction_length: L, words of the text that a game shows beside its frames at most; 0: none.
      tasks: names of the tasks that its games play, usually one.
      task_ids: int32 [N], each game's index in `tasks`.
      reward_scales: float32 [N], what each game's rewards were multiplied by.
      faults: what went wrong in the games.
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
        self.faults = faults.Faults(num_envs)
        self._over = np.zeros(num_envs, bool)  # games whose next step starts an episode
        self._is_cut = np.zeros(num_envs, bool)  # games whose episode a fault has just ended
        self._shown: Any = None  # the last observation, where it has floats

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
        observation = self._guarded(self._reset)
        self._started = True
        self._is_cut[:] = False
        instruction = self._instruction() if self.instruction_length else ()
        output = types.EnvOutput(
            observation=observation,
            reward=np.zeros(self.num_envs, np.float32),
            discount=np.ones(self.num_envs, np.float32),
            is_first=np.ones(self.num_envs, bool),
            previous_action=np.zeros(self.num_envs, np.int32),
            instruction=instruction,
        )
        return self._screened(output)

    def step(self, actions: np.ndarray) -> types.EnvOutput:
        """Takes an action in each game.

        Args:
          actions: integers [N], each in [0, num_values).

        Returns:
          NumPy arrays [N, ...].

        Raises:
          RuntimeError: before the first `reset`.
          ValueError: for actions of another shape, type or range. (ALE would hang.)
          EnvironmentFailedError: if the games cannot go on.
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
        return self._screened(self._guarded(self._step, actions.astype(np.int32)))

    def _guarded(self, call: Callable, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except faults.EnvironmentFailedError:
            raise
        except Exception as error:  # whatever a game raises, its name belongs to it
            raise self.faults.failure(error) from error

    def _screened(self, output: types.EnvOutput) -> types.EnvOutput:
        """The row with what is not finite taken out, and its games' episodes ended."""
        if self._is_cut.any():  # a game that went on all the same opens an episode here
            output = output._replace(
                reward=np.where(self._is_cut, np.float32(0), output.reward),
                discount=np.where(self._is_cut, np.float32(1), output.discount),
                is_first=output.is_first | self._is_cut,
            )
        self.faults.follow(output.is_first)
        self._is_cut = np.zeros(self.num_envs, bool)
        self._note(faults.REWARDS, "reward", output.reward)
        self._note(faults.DISCOUNTS, "discount", output.discount)
        output = output._replace(observation=self._screened_observation(output.observation))
        if self._is_cut.any():
            self._over = self._over | self._is_cut
            output = output._replace(
                reward=np.where(self._is_cut, np.float32(0), output.reward),
                discount=np.where(self._is_cut, np.float32(1), output.discount),
            )
        return output

    def _screened_observation(self, observation: Any) -> Any:
        """Arrays [N, ...], where a game's are not finite those of the row before (or zeros)."""
        floats = [leaf for leaf in tree.flatten(observation) if leaf.dtype.kind == "f"]
        if not floats:
            return observation
        is_lost = np.zeros(self.num_envs, bool)
        for leaf in floats:
            is_lost |= self._note(faults.OBSERVATIONS, "observation", leaf)
        if is_lost.any():
            before = self._shown
            if before is None:
                before = tree.map_structure(np.zeros_like, observation)
            observation = tree.map_structure(
                lambda new, old: np.where(is_lost.reshape(-1, *[1] * (new.ndim - 1)), old, new),
                observation,
                before,
            )
        self._shown = observation
        return observation

    def _note(self, kind: str, name: str, values: np.ndarray) -> np.ndarray:
        """Notes the games, bool [N], of which some value [N, ...] is not finite."""
        finite = np.isfinite(values)
        if finite.all():
            return np.zeros(self.num_envs, bool)
        games = ~finite.reshape(self.num_envs, -1).all(1)
        for game in np.flatnonzero(games).tolist():
            value = values[game][~finite[game]].flat[0] if values.ndim > 1 else values[game]
            self.faults.note(game, kind, f"its {name} is {value}")
        self._is_cut |= games
        return games

    def fault_counts(self) -> collections.Counter[str]:
        """How often each kind of fault of `faults` has happened so far."""
        return self.faults.counts

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

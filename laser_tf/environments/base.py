"""The interface of all environments: N of them that step together."""

import abc
import collections
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tree
from dm_env import specs

from laser_tf import types
from laser_tf.environments import faults


class NoPictureError(RuntimeError):
    """An environment that cannot be drawn; the message says why."""


class OwnSpec(NamedTuple):
    """What a task's environment itself takes and shows, before it is made canonical."""

    action: specs.BoundedArray
    # What its integers begin with, which agents see counted from 0: of each leaf of the
    # observation, in the order of `tree.flatten`, a number, or one for each entry.
    observation_firsts: list[Any]


class BatchedEnvironment(abc.ABC):
    """N environments of one task, stepped together, each starting again by itself.

    Time steps follow the convention of `laser_tf.types`. The step after a game's end ignores its
    action and returns the next game's first observation with `is_first`, reward 0 and discount 1;
    `previous_action` is always what the environment was sent.

    Environment i depends on `seed + i` and its own actions only, so that a batch of one with that
    seed plays it again. Returned arrays are the caller's to keep.

    A reward, discount or float of an observation that is not finite never leaves: the step gets
    reward 0, discount 1 and the observation before, and the next step has `is_first`, as after a
    time limit. A suite starts a new episode there if it looks at `_over`; in others the game goes
    on from where it is.

    Attributes:
      num_envs: N.
      action_repeat: env frames an agent step.
      tasks: names of the tasks that are played, usually one.
      task_ids: int32 [N], each environment's index in `tasks`.
      reward_scales: float32 [N], what each environment's rewards were multiplied by.
      faults: what went wrong.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        action_repeat: int,
        observation: Any,
        action: specs.BoundedArray,
    ):
        """Takes the specs of a single environment's time step, see `types.EnvironmentSpec`."""
        self.num_envs = num_envs
        self.action_repeat = action_repeat
        self.tasks: tuple[str, ...] = ("",)
        self.task_ids = np.zeros(num_envs, np.int32)
        self.reward_scales = np.ones(num_envs, np.float32)
        self._observation_spec = observation
        self._action_spec = action
        self._started = False
        self.faults = faults.Faults(num_envs)
        self._over = np.zeros(num_envs, bool)  # games whose next step starts an episode
        self._is_cut = np.zeros(num_envs, bool)  # games whose episode a fault has just ended
        self._shown: Any = None  # the last observation, where it has floats

    def observation_spec(self) -> Any:
        """Of a single environment: nest of specs, images as single frames."""
        return self._observation_spec

    def action_spec(self) -> specs.BoundedArray:
        """Of a single environment: a `DiscreteArray`, or float32 [D] with finite bounds."""
        return self._action_spec

    def own_specs(self) -> list[OwnSpec]:
        """What single environments themselves take and show, of each of `tasks`."""
        return [OwnSpec(self._action_spec, [0] * len(tree.flatten(self._observation_spec)))]

    def spec(self) -> types.EnvironmentSpec:
        """What an agent that plays here must fit."""
        return types.EnvironmentSpec(self._observation_spec, self._action_spec, len(self.tasks))

    def random_actions(self, generator: np.random.Generator) -> np.ndarray:
        """Uniformly drawn actions for all environments, [N, ...]."""
        spec, shape = self._action_spec, (self.num_envs, *self._action_spec.shape)
        if isinstance(spec, specs.DiscreteArray):
            return generator.integers(spec.num_values, size=shape, dtype=spec.dtype)
        return generator.uniform(spec.minimum, spec.maximum, shape).astype(spec.dtype)

    def reset(self) -> types.EnvOutput:
        """Starts a new episode everywhere: NumPy arrays [N, ...] with `is_first` set.

        The first call seeds the environments. A later one lets their random streams run on.
        """
        observation = self._guarded(self._reset)
        self._started = True
        self._is_cut[:] = False
        output = types.EnvOutput(
            observation=observation,
            reward=np.zeros(self.num_envs, np.float32),
            discount=np.ones(self.num_envs, np.float32),
            is_first=np.ones(self.num_envs, bool),
            previous_action=np.zeros(
                (self.num_envs, *self._action_spec.shape), self._action_spec.dtype
            ),
        )
        return self._screened(output)

    def step(self, actions: np.ndarray) -> types.EnvOutput:
        """Takes an action in each environment.

        Args:
          actions: [N, ...], each within the action spec: integers [N], or floats [N, D].

        Returns:
          NumPy arrays [N, ...].

        Raises:
          RuntimeError: before the first `reset`.
          ValueError: for actions of another shape, type or range. (ALE would hang.)
          EnvironmentFailedError: if the games cannot go on.
        """
        if not self._started:
            raise RuntimeError("no episode is going on: call reset() before step()")
        actions = np.asarray(actions)
        spec = self._action_spec
        shape = (self.num_envs, *spec.shape)
        kind = np.integer if np.issubdtype(spec.dtype, np.integer) else np.floating
        if actions.shape != shape or not np.issubdtype(actions.dtype, kind):
            raise ValueError(
                f"actions are {actions.dtype}{list(actions.shape)}: pass {spec.dtype}{list(shape)}"
            )
        # Not a comparison with what is outside: NaN is on neither side.
        if not ((actions >= spec.minimum) & (actions <= spec.maximum)).all():
            raise ValueError(
                f"actions are {actions.tolist()}: use values from {spec.minimum.tolist()} to "
                f"{spec.maximum.tolist()}"
            )
        return self._screened(self._guarded(self._step, actions.astype(spec.dtype)))

    def _guarded(self, call: Callable, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except faults.EnvironmentFailedError:
            raise
        except Exception as error:  # whatever a game raises, its name belongs to it
            raise self.faults.failure(error) from error

    def _screened(self, output: types.EnvOutput) -> types.EnvOutput:
        """The step with what is not finite taken out, and its games' episodes ended."""
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
        """Arrays [N, ...], where a game's are not finite those of the step before (or zeros)."""
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
    def _reset(self) -> Any:
        """Starts all environments and returns their observations, a nest of arrays [N, ...]."""

    @abc.abstractmethod
    def _step(self, actions: np.ndarray) -> types.EnvOutput:
        """Steps with valid actions, [N, ...], that nobody else holds."""

    @abc.abstractmethod
    def render(self, index: int) -> np.ndarray:
        """A picture of one environment now: uint8 [height, width, 3], RGB.

        Raises:
          NoPictureError: for an environment that cannot be drawn.
          RuntimeError: for an environment that was made without `rendering=True` and needs it.
        """

    def close(self) -> None:
        """Frees what the environments hold: this object is of no more use."""
        self._started = False

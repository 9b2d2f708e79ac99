"""The interface of all environments: N of them that step together."""

import abc
from typing import Any

import numpy as np
from dm_env import specs

from laser_tf import types


class BatchedEnvironment(abc.ABC):
    """N environments of one task, stepped together, each starting again by itself.

    Time steps follow the convention of `laser_tf.types`. The step after a game's end ignores its
    action and returns the next game's first observation with `is_first`, reward 0 and discount 1;
    `previous_action` is always what the environment was sent.

    Environment i depends on `seed + i` and its own actions only, so that a batch of one with that
    seed plays it again. Returned arrays are the caller's to keep.

    Attributes:
      num_envs: N.
      action_repeat: env frames an agent step.
      tasks: names of the tasks that are played, usually one.
      task_ids: int32 [N], each environment's index in `tasks`.
      reward_scales: float32 [N], what each environment's rewards were multiplied by.
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

    def observation_spec(self) -> Any:
        """Of a single environment: nest of specs, images as single frames."""
        return self._observation_spec

    def action_spec(self) -> specs.BoundedArray:
        """Of a single environment: a `DiscreteArray`, or float32 [D] with finite bounds."""
        return self._action_spec

    def spec(self) -> types.EnvironmentSpec:
        """What an agent that plays here must fit."""
        return types.EnvironmentSpec(self._observation_spec, self._action_spec, len(self.tasks))

    def reset(self) -> types.EnvOutput:
        """Starts a new episode everywhere: NumPy arrays [N, ...] with `is_first` set.

        The first call seeds the environments. A later one lets their random streams run on.
        """
        observation = self._reset()
        self._started = True
        return types.EnvOutput(
            observation=observation,
            reward=np.zeros(self.num_envs, np.float32),
            discount=np.ones(self.num_envs, np.float32),
            is_first=np.ones(self.num_envs, bool),
            previous_action=np.zeros(
                (self.num_envs, *self._action_spec.shape), self._action_spec.dtype
            ),
        )

    def step(self, actions: np.ndarray) -> types.EnvOutput:
        """Takes an action in each environment.

        Args:
          actions: [N, ...], each within the action spec: integers [N], or floats [N, D].

        Returns:
          NumPy arrays [N, ...].

        Raises:
          RuntimeError: before the first `reset`.
          ValueError: for actions of another shape, type or range. (ALE would hang.)
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
        return self._step(actions.astype(spec.dtype))

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
          RuntimeError: for an environment that was made without `rendering=True` and needs it.
        """

    def close(self) -> None:
        """Frees what the environments hold: this object is of no more use."""
        self._started = False

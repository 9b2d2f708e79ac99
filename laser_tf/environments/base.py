"""The interface of all environments: N environments that step together."""

import abc
import collections
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tree
from dm_env import specs

from laser_tf import errors, observations, types
from laser_tf.environments import faults


class RenderError(RuntimeError):
    """An environment cannot render an image; the message gives the reason."""


class NativeSpec(NamedTuple):
    """Specs of a task's environment before their conversion to canonical specs."""

    action: Any  # nest of `specs.BoundedArray`
    # For each leaf of the observation, in the order of `tree.flatten`: the number at which its
    # integers start, or one number for each entry. Agents see integers that start at 0.
    observation_offsets: list[Any]


class Transition(NamedTuple):
    """Result of a step of N environments, before the base class completes it."""

    observation: Any  # Nest of arrays [N, ...].
    reward: np.ndarray  # [N]
    discount: np.ndarray  # [N]
    is_last: np.ndarray  # bool [N], whether the environment has ended the episode.


class BatchedEnvironment(abc.ABC):
    """N environments of one task that step together and restart by themselves.

    Time steps follow the convention of `laser_tf.types`. The step after the end of an episode
    ignores its action. It returns the first observation of the next episode with `is_first`, reward
    0 and discount 1. The caller may keep the returned arrays.

    Environment i depends on `seed + i` and its own actions only, so a batch of one environment with
    that seed repeats its episodes. Environments that use a global random generator do not, because
    the environments of a worker share it.

    A subclass implements `_reset` and `_step`. This class limits the length of episodes and
    replaces values that are not finite. Such a step gets reward 0, discount 1 and the observation
    before, and the episode ends as by a time limit.

    Attributes:
      action_repeat: Env frames of an agent step.
      max_steps_per_episode: Agent steps after which an episode is truncated; 0 for no limit.
      tasks: Names of the tasks, usually one.
      task_ids: int32 [N], index in `tasks` of each environment.
      reward_scales: float32 [N], factors of the rewards.
    """

    def __init__(
        self, num_envs: int, *, observation: Any, action: specs.BoundedArray, action_repeat: int = 1
    ):
        """Takes the specs of one environment's time step, see `types.EnvironmentSpec`."""
        self.num_envs = num_envs
        self.action_repeat = action_repeat
        self.max_steps_per_episode = 0
        self.tasks: tuple[str, ...] = ("",)
        self.task_ids = np.zeros(num_envs, np.int32)
        self.reward_scales = np.ones(num_envs, np.float32)
        self.faults = faults.Faults(num_envs)
        self._observation_spec = observation
        self._action_spec = action
        self._started = False
        self._over = np.zeros(num_envs, bool)  # The next step starts an episode.
        self._last_observation: Any = None  # Kept only for observations with floats.
        self._action_mask: np.ndarray | None = None  # Newest one, bool [N, A], if there are masks.

    def observation_spec(self) -> Any:
        """Returns the nest of specs of one environment, with images as single frames."""
        return self._observation_spec

    def action_spec(self) -> specs.BoundedArray:
        """Returns the canonical spec of one environment, see `types.EnvironmentSpec`."""
        return self._action_spec

    def native_specs(self) -> list[NativeSpec]:
        """Returns the native specs of each of `tasks`."""
        return [NativeSpec(self._action_spec, [0] * len(tree.flatten(self._observation_spec)))]

    def spec(self) -> types.EnvironmentSpec:
        """Returns the specs and number of tasks that an agent must fit."""
        return types.EnvironmentSpec(self._observation_spec, self._action_spec, len(self.tasks))

    def random_actions(self, generator: np.random.Generator) -> np.ndarray:
        """Samples uniform actions for all environments, [N, ...], that the newest masks allow."""
        if self._action_mask is not None:
            keys = np.where(self._action_mask, generator.random(self._action_mask.shape), -1)
            return keys.argmax(axis=1).astype(self._action_spec.dtype)
        spec, shape = self._action_spec, (self.num_envs, *self._action_spec.shape)
        if isinstance(spec, specs.DiscreteArray):
            return generator.integers(spec.num_values, size=shape, dtype=spec.dtype)
        actions = generator.uniform(spec.minimum, spec.maximum, shape).astype(spec.dtype)
        if isinstance(spec, types.ProductSpec):
            size = (self.num_envs, len(spec.integers))
            actions[:, spec.integers] = generator.integers(spec.num_values, size=size)
        return actions

    def reset(self) -> types.EnvOutput:
        """Starts a new episode in each environment and returns NumPy arrays [N, ...].

        The first call seeds the environments. A later call continues their random streams.
        """
        self._over = np.ones(self.num_envs, bool)
        observation = self._guarded(self._reset)
        self._started = True
        action_shape = (self.num_envs, *self._action_spec.shape)
        return self._complete(
            Transition(observation, *np.zeros((3, self.num_envs))),
            np.zeros(action_shape, self._action_spec.dtype),
        )

    def step(self, actions: np.ndarray) -> types.EnvOutput:
        """Takes actions [N] or [N, D] within the action spec and returns NumPy arrays [N, ...].

        Raises:
          RuntimeError: Before the first `reset`.
          ValueError: For actions of another shape or type.
          ConfigError: For actions out of range, e.g. of an agent whose weights are too large.
          EnvironmentFailedError: If the environments cannot continue.
        """
        if not self._started:
            raise RuntimeError("no episode has started: call reset() before step()")
        actions = np.asarray(actions)
        spec = self._action_spec
        shape = (self.num_envs, *spec.shape)
        kind = np.integer if np.issubdtype(spec.dtype, np.integer) else np.floating
        if actions.shape != shape or not np.issubdtype(actions.dtype, kind):
            raise ValueError(
                f"actions must be {spec.dtype}{list(shape)}, got "
                f"{actions.dtype}{list(actions.shape)}"
            )
        # This form of the comparison finds NaN, too. ALE would hang.
        is_valid = (actions >= spec.minimum) & (actions <= spec.maximum)
        if not is_valid.all():  # A network that overflows gives NaN, or a value beyond the last.
            raise errors.ConfigError(
                f"actions must be from {spec.minimum.tolist()} to {spec.maximum.tolist()}, got "
                f"{actions[~is_valid][0]}. If an agent chose it, weights or observations are too "
                "large: scale observations to about 1, or start again with another --workdir and a "
                "lower learner.learning_rate."
            )
        actions = actions.astype(spec.dtype)
        return self._complete(self._guarded(self._step, actions, self._over), actions)

    def _guarded(self, call: Callable, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except faults.EnvironmentFailedError:
            raise
        except Exception as error:  # User code and engines raise anything.
            raise self.faults.failure(error) from error

    def _complete(self, transition: Transition, actions: np.ndarray) -> types.EnvOutput:
        """Applies the time convention, the time limit and the checks to a transition."""
        is_first = self._over
        self.faults.advance(is_first)
        with np.errstate(over="ignore"):  # The check finds what is infinite in float32.
            reward = np.float32(np.where(is_first, 0, transition.reward * self.reward_scales))
            discount = np.float32(np.where(is_first, 1, transition.discount))
        is_faulty = self.faults.note_non_finite(faults.REWARDS, "reward", reward)
        is_faulty |= self.faults.note_non_finite(faults.DISCOUNTS, "discount", discount)
        observation, is_lost = self._finite_observation(transition.observation)
        self._action_mask = observations.action_mask(observation)
        is_faulty |= is_lost
        self._over = (transition.is_last.astype(bool) & ~is_first) | is_faulty
        if self.max_steps_per_episode:
            self._over |= self.faults.episode_steps >= self.max_steps_per_episode
        return types.EnvOutput(
            observation=observation,
            reward=np.where(is_faulty, np.float32(0), reward),
            discount=np.where(is_faulty, np.float32(1), discount),
            is_first=is_first,
            previous_action=actions,
        )

    def _finite_observation(self, observation: Any) -> tuple[Any, np.ndarray]:
        """Replaces observations that are not finite by those of the step before (or zeros).

        Also returns a mask bool [N] of the environments with a replaced observation.
        """
        is_lost = np.zeros(self.num_envs, bool)
        floats = [leaf for leaf in tree.flatten(observation) if leaf.dtype.kind == "f"]
        if not floats:
            return observation, is_lost
        for leaf in floats:
            is_lost |= self.faults.note_non_finite(faults.OBSERVATIONS, "observation", leaf)
        if is_lost.any():
            before = self._last_observation
            if before is None:
                before = tree.map_structure(np.zeros_like, observation)
            observation = replaced(is_lost, before, observation)
        self._last_observation = observation
        return observation, is_lost

    def fault_counts(self) -> collections.Counter[str]:
        """Returns how often each fault has happened so far, by its name in `faults.KINDS`."""
        return self.faults.counts

    @abc.abstractmethod
    def _reset(self) -> Any:
        """Starts all environments and returns their observations, a nest of arrays [N, ...]."""

    @abc.abstractmethod
    def _step(self, actions: np.ndarray, is_first: np.ndarray) -> Transition:
        """Takes valid actions [N, ...]; environments of `is_first`, bool [N], start an episode.

        These ignore their actions, and their rewards, discounts and `is_last` are ignored.
        """

    @abc.abstractmethod
    def render(self, index: int) -> np.ndarray:
        """Returns an RGB image of one environment, uint8 [height, width, 3].

        Raises:
          RenderError: If the environment cannot be rendered.
          RuntimeError: If the environment was made without `rendering=True`.
        """

    def close(self) -> None:
        """Frees the resources of the environments, which cannot be used afterwards."""
        self._started = False


def replaced(mask: np.ndarray, new: Any, old: Any) -> Any:
    """Returns the nest `old` of arrays [N, ...] with the entries of a mask bool [N] from `new`."""
    return tree.map_structure(
        lambda n, o: np.where(mask.reshape(-1, *[1] * (n.ndim - 1)), n, o), new, old
    )


def action_generator(seed: int) -> np.random.Generator:
    """Returns a generator of actions, independent of targets that `default_rng(seed)` samples."""
    (actions,) = np.random.SeedSequence(seed).spawn(1)
    return np.random.default_rng(actions)

"""Gymnasium environments as dm_env environments. Only workers import this module."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import dm_env
import gymnasium
import numpy as np
from dm_env import specs
from gymnasium import spaces

from laser_tf.environments import faults, result_checks

_PACKAGE = "gymnasium."
_IMAGES = "rgb_array"


class Gymnasium(dm_env.Environment):
    """One environment; an episode that is truncated keeps the discount at 1."""

    def __init__(self, environment: gymnasium.Env, seed: int):
        """Maps the spaces to specs.

        Raises:
          UnsupportedSpaceError: for a space that has none.
        """
        self._environment = environment
        self._seed: int | None = seed
        self._observation_spec = spec_of(environment.observation_space, "observation")
        self._has_starts = _has_starts(environment.observation_space)
        self._action_spec = _action_spec(environment.action_space)

    def reset(self) -> dm_env.TimeStep:
        """The first of all is seeded."""
        observation = result_checks.gymnasium_reset(self._environment.reset(seed=self._seed))[0]
        self._seed = None
        return dm_env.restart(self._shown(observation))

    def step(self, action: Any) -> dm_env.TimeStep:
        """See `dm_env.Environment`."""
        observation, reward, terminated, truncated, _ = result_checks.gymnasium_step(
            self._environment.step(action)
        )
        is_last = terminated or truncated
        return dm_env.TimeStep(
            dm_env.StepType.LAST if is_last else dm_env.StepType.MID,
            reward,
            0.0 if terminated else 1.0,
            self._shown(observation),
        )

    def _shown(self, observation: Any) -> Any:
        if not self._has_starts:
            return observation
        return _from_zero(self._environment.observation_space, observation)

    def observation_spec(self) -> Any:
        """See `spec_of`."""
        return self._observation_spec

    def observation_offsets(self) -> list[Any]:
        """Returns the offset of each leaf, see `base.NativeSpec`."""
        return list(_firsts(self._environment.observation_space))

    def action_spec(self) -> specs.Array:
        """See `spec_of`."""
        return self._action_spec

    def render(self) -> np.ndarray:
        """Its picture."""
        mode = self._environment.render_mode
        if mode != _IMAGES:
            raise NotImplementedError(
                f"its render_mode is {mode!r}, not {_IMAGES!r}"
                if draws(self._environment)
                else f"its render_modes have no {_IMAGES}"
            )
        return np.asarray(self._environment.render())

    def close(self) -> None:
        """See `dm_env.Environment`."""
        self._environment.close()


def spec_of(space: gymnasium.Space, name: str) -> Any:
    """A space as dm_env's spec, or a nest of them; a `Discrete` begins at 0.

    Raises:
      UnsupportedSpaceError: for a space that has none; the message names it.
    """
    match space:
        case spaces.Discrete():
            return specs.DiscreteArray(int(space.n), np.int64, name)
        case spaces.Box():
            return specs.BoundedArray(space.shape, space.dtype, space.low, space.high, name)
        case spaces.MultiBinary():
            return specs.BoundedArray(space.shape, space.dtype, 0, 1, name)
        case spaces.MultiDiscrete():
            return specs.BoundedArray(space.shape, space.dtype, 0, space.nvec - 1, name)
        case spaces.Text():
            return specs.StringArray((), name=name)
        case spaces.Dict():
            return {key: spec_of(part, f"{name}[{key!r}]") for key, part in space.spaces.items()}
        case spaces.Tuple():
            parts = enumerate(space.spaces)
            return tuple(spec_of(part, f"{name}[{index}]") for index, part in parts)
    raise faults.UnsupportedSpaceError(
        f"its {name} is a {type(space).__name__}: agents read Box, Discrete, MultiBinary, "
        "MultiDiscrete and Text, and Dict and Tuple of them; change it by a gymnasium wrapper"
    )


def _action_spec(space: gymnasium.Space) -> specs.Array:
    match space:
        case spaces.Discrete():
            last = int(space.start + space.n - 1)
            return specs.BoundedArray((), np.int64, int(space.start), last, "action")
        case spaces.Box():
            return specs.BoundedArray(space.shape, space.dtype, space.low, space.high, "action")
    raise faults.UnsupportedSpaceError(
        f"its action is a {type(space).__name__}: agents take Discrete, or Box of floats with "
        "finite bounds; change it by a gymnasium wrapper"
    )


def _has_starts(space: gymnasium.Space) -> bool:
    """Returns whether a `Discrete` or `MultiDiscrete` does not start at 0."""
    if hasattr(space, "spaces"):
        parts = space.spaces.values() if isinstance(space.spaces, Mapping) else space.spaces
        return any(map(_has_starts, parts))
    return bool(np.any(getattr(space, "start", 0)))


def _firsts(space: gymnasium.Space) -> Iterator[Any]:
    """Yields the start of each leaf: an integer, or a list of the canonical shape."""
    if not hasattr(space, "spaces"):
        first = np.asarray(getattr(space, "start", 0))
        yield (first.reshape(-1) if first.ndim else first).tolist() if first.any() else 0
        return
    is_named = isinstance(space.spaces, Mapping)
    for key in sorted(space.spaces) if is_named else range(len(space.spaces)):
        yield from _firsts(space.spaces[key])


def _from_zero(space: gymnasium.Space, value: Any) -> Any:
    """An observation whose integers begin at 0; what does not fit its space is left as it is."""
    if hasattr(space, "spaces"):
        if isinstance(space.spaces, Mapping) and isinstance(value, Mapping):
            known = space.spaces
            return {k: _from_zero(known[k], v) if k in known else v for k, v in value.items()}
        if isinstance(value, tuple | list) and len(value) == len(space.spaces):
            return tuple(map(_from_zero, space.spaces, value))
        return value
    return value - space.start if np.any(getattr(space, "start", 0)) else value


def insert_check(environment: gymnasium.Env) -> None:
    """Inserts an `ApiCheck` below gymnasium's own wrappers, if there are any.

    Raises:
      UnsupportedSpaceError: If `reset` of the environment does not accept seed and options.
    """
    lowest, inner = None, environment
    while isinstance(inner, gymnasium.Wrapper) and type(inner).__module__.startswith(_PACKAGE):
        lowest, inner = inner, inner.env
    if lowest is not None:
        _check_reset_keywords(inner)
        lowest.env = ApiCheck(inner)


def draws(environment: Any) -> bool:
    """Returns whether an environment, or its class, declares that it renders images."""
    return _IMAGES in environment.metadata.get("render_modes", [])


class ApiCheck(gymnasium.Wrapper):
    """Checks what the environment returns; see `result_checks`."""

    def reset(self, **keywords: Any) -> tuple[Any, Any]:
        """See `gymnasium.Env`."""
        return result_checks.gymnasium_reset(self.env.reset(**keywords))

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        """See `gymnasium.Env`."""
        return result_checks.gymnasium_step(self.env.step(action))


def _check_reset_keywords(environment: gymnasium.Env) -> None:
    try:
        parameters = inspect.signature(environment.reset).parameters
    except (TypeError, ValueError):  # A C extension has no signature.
        return
    takes_any = any(value.kind == value.VAR_KEYWORD for value in parameters.values())
    missing = {"seed", "options"} - set(parameters)
    if missing and not takes_any:
        raise faults.UnsupportedSpaceError(
            "its reset() must accept seed and options, got "
            f"reset({', '.join(parameters)}). This is the API of gymnasium. Define "
            "reset(self, *, seed=None, options=None)"
        )

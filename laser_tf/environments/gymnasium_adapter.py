"""Gymnasium environments as dm_env environments. Only workers import this module."""

import pathlib
import traceback
from collections.abc import Callable
from typing import Any

import dm_env
import gymnasium
import numpy as np
import tree
from dm_env import specs
from gymnasium import spaces

from laser_tf.environments import faults, result_checks

_PACKAGE = str(pathlib.Path(gymnasium.__file__).parent)
_IMAGES = "rgb_array"


class Gymnasium(dm_env.Environment):
    """One environment; an episode that is truncated keeps the discount at 1."""

    def __init__(self, environment: gymnasium.Env, seed: int):
        """Maps the spaces to specs; `seed` is that of the first reset.

        Raises:
          UnsupportedSpaceError: For a space without a spec.
        """
        self._environment = environment
        self._seed: int | None = seed
        self._observation_spec = spec_of(environment.observation_space, "observation")
        self._action_spec = action_spec_of(environment.action_space)

    def reset(self) -> dm_env.TimeStep:
        """See `dm_env.Environment`."""
        result = _call(self._environment.reset, seed=self._seed)
        self._seed = None
        return dm_env.restart(result_checks.gymnasium_reset(result))

    def step(self, action: Any) -> dm_env.TimeStep:
        """See `dm_env.Environment`."""
        result = result_checks.gymnasium_step(_call(self._environment.step, action))
        observation, reward, terminated, truncated = result
        is_last = terminated or truncated
        return dm_env.TimeStep(
            dm_env.StepType.LAST if is_last else dm_env.StepType.MID,
            reward,
            0.0 if terminated else 1.0,
            observation,
        )

    def observation_spec(self) -> Any:
        """See `spec_of`."""
        return self._observation_spec

    def observation_offsets(self) -> list[Any]:
        """Returns the number or array at which the integers of each leaf start."""
        return [
            getattr(leaf, "start", 0) for leaf in tree.flatten(self._environment.observation_space)
        ]

    def action_spec(self) -> specs.Array:
        """See `action_spec_of`."""
        return self._action_spec

    def render(self) -> np.ndarray:
        """Returns the rendered image."""
        mode = self._environment.render_mode
        if mode != _IMAGES:
            raise NotImplementedError(
                f"its render_mode is {mode!r}, not {_IMAGES!r}"
                if renders_images(self._environment)
                else f"its render_modes have no {_IMAGES}"
            )
        return np.asarray(self._environment.render())

    def close(self) -> None:
        """See `dm_env.Environment`."""
        self._environment.close()


def _call(method: Callable, *arguments: Any, **keywords: Any) -> Any:
    """Calls a method; an error that gymnasium's own wrappers raise names the expected API."""
    try:
        return method(*arguments, **keywords)
    except (TypeError, ValueError) as error:
        if traceback.extract_tb(error.__traceback__)[-1].filename.startswith(_PACKAGE):
            raise ValueError(f"{error}. {result_checks.GYMNASIUM_API}") from error
        raise


def spec_of(space: gymnasium.Space, name: str) -> Any:
    """Returns the dm_env spec of a space, or a nest of specs, as if all integers started at 0.

    Raises:
      UnsupportedSpaceError: For a space without a spec; the message names it.
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


def action_spec_of(space: gymnasium.Space) -> specs.Array:
    """Returns the dm_env spec of an action space; raises `UnsupportedSpaceError` without one."""
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


def renders_images(environment: Any) -> bool:
    """Returns whether an environment, or its class, declares that it renders images."""
    return _IMAGES in environment.metadata.get("render_modes", [])

"""Gymnasium's environments (Towers et al. 2024): any id that is registered.

`task=CartPole-v1`, or `my_package:MyEnv-v0`, which imports `my_package` first.
"""

import dataclasses
import functools
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import dm_env
import numpy as np
from dm_env import specs

from laser_tf import errors
from laser_tf.environments import (
    faults,
    gymnasium_ids,
    gymnasium_results,
    python_config,
    user_modules,
)

if TYPE_CHECKING:  # it is loaded in workers
    import gymnasium

_ID = re.compile(r"([A-Za-z_][\w.]*:)?[\w./-]+")
_OLD_GYM = "GymV"  # ids whose argument env_id makes the package gym import a module
_PICTURES = "rgb_array"
# Package in gymnasium's message -> remedy. Its own advice for Box2D asks for swig, which the
# wheel does not need. Its advice for MuJoCo installs a version that dm_control rejects.
_REMEDIES = {
    "Box2D": "Box2D is not installed: run make box2d, or pip install box2d",
    "MuJoCo": "MuJoCo is not installed or cannot be imported: run make control, or install this "
    "package with its extra [control]",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class GymnasiumConfig(python_config.PythonConfig):
    """Of gymnasium's registry; `arguments` are those of `gymnasium.make`."""

    suite: str = "gymnasium"
    task: str = "CartPole-v1"

    def check_task(self, task: str) -> str:
        """Checks the form alone: user code, which registers ids, runs in workers only."""
        if not _ID.fullmatch(task):
            raise errors.ConfigError(
                "use an id of gymnasium, e.g. CartPole-v1, or my_package:MyEnv-v0"
            )
        return task

    def user_code(self) -> tuple[str, ...]:
        """See `EnvironmentConfig`."""
        return tuple(task for task in self.tasks if ":" in task or task.startswith(_OLD_GYM))

    def maker(self, task: str, rendering: bool) -> Callable[[int], dm_env.Environment]:
        """See `PythonConfig`."""
        return functools.partial(make, task, self.keyword_arguments(), rendering)


def make(task: str, arguments: dict[str, Any], rendering: bool, seed: int) -> "Gymnasium":
    """Makes an environment of the registry.

    Args:
      task: its id, after "package:" if that registers it.
      arguments: of `gymnasium.make`.
      rendering: whether `render` will be called, where the environment can do that.
      seed: of its first reset; its random stream then runs on.

    Raises:
      RefusedError: for an unknown id, a package that it needs, or spaces that agents cannot read.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    import gymnasium

    from laser_tf.environments import gymnasium_api

    package, _, name = task.rpartition(":")
    if package:
        user_modules.load_module(package)
    gymnasium_ids.check(package, name, gymnasium.registry)
    try:
        environment = _create(name, arguments, rendering)
    except gymnasium.error.DependencyNotInstalled as error:
        found = (remedy for package, remedy in _REMEDIES.items() if package in str(error))
        raise faults.RefusedError(next(found, str(error))) from error
    gymnasium_api.insert_check(environment)
    return Gymnasium(environment, seed)


def _create(name: str, arguments: dict[str, Any], rendering: bool) -> "gymnasium.Env":
    """Makes a registered environment; to be rendered, it is asked for pictures if it has any."""
    import gymnasium
    from gymnasium.envs import registration

    create = functools.partial(gymnasium.make, name, disable_env_checker=True)
    if not rendering:
        return create(**arguments)
    entry_point = registration.spec(name).entry_point
    if isinstance(entry_point, str):
        entry_point = registration.load_env_creator(entry_point)
    if not _takes_render_mode(entry_point):
        return create(**arguments)
    with_pictures = {"render_mode": _PICTURES, **arguments}
    if hasattr(entry_point, "metadata"):  # a class
        return create(**(with_pictures if _draws(entry_point) else arguments))
    environment = create(**arguments)  # by a function: what it makes tells
    if not _draws(environment):
        return environment
    environment.close()
    try:
        return create(**with_pictures)
    except TypeError:  # it hands render_mode on to what does not take it
        return create(**arguments)


def _takes_render_mode(entry_point: Callable) -> bool:
    return any(
        parameter.name == "render_mode" or parameter.kind == parameter.VAR_KEYWORD
        for parameter in inspect.signature(entry_point).parameters.values()
    )


def _draws(environment: Any) -> bool:
    """Whether an environment, or its class, says that it draws pictures."""
    return _PICTURES in environment.metadata.get("render_modes", [])


class Gymnasium(dm_env.Environment):
    """One environment; an episode that is truncated keeps the discount at 1."""

    def __init__(self, environment: "gymnasium.Env", seed: int):
        """Maps the spaces to specs.

        Raises:
          RefusedError: for a space that has none.
        """
        self._environment = environment
        self._seed: int | None = seed
        self._observation_spec = spec_of(environment.observation_space, "observation")
        self._has_starts = _has_starts(environment.observation_space)
        self._action_spec = _action_spec(environment.action_space)

    def reset(self) -> dm_env.TimeStep:
        """The first of all is seeded."""
        observation = gymnasium_results.of_reset(self._environment.reset(seed=self._seed))[0]
        self._seed = None
        return dm_env.restart(self._shown(observation))

    def step(self, action: Any) -> dm_env.TimeStep:
        """See `dm_env.Environment`."""
        observation, reward, terminated, truncated, _ = gymnasium_results.of_step(
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
        """What is subtracted from each leaf, see `base.NativeSpec`."""
        return list(_firsts(self._environment.observation_space))

    def action_spec(self) -> specs.Array:
        """See `spec_of`."""
        return self._action_spec

    def render(self) -> np.ndarray:
        """Its picture."""
        mode = self._environment.render_mode
        if mode != _PICTURES:
            raise NotImplementedError(
                f"its render_mode is {mode!r}, not {_PICTURES!r}"
                if _draws(self._environment)
                else f"its render_modes have no {_PICTURES}"
            )
        return np.asarray(self._environment.render())

    def close(self) -> None:
        """See `dm_env.Environment`."""
        self._environment.close()


def spec_of(space: "gymnasium.Space", name: str) -> Any:
    """A space as dm_env's spec, or a nest of them; a `Discrete` begins at 0.

    Raises:
      RefusedError: for a space that has none; the message names it.
    """
    from gymnasium import spaces

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
    raise faults.RefusedError(
        f"its {name} is a {type(space).__name__}: agents read Box, Discrete, MultiBinary, "
        "MultiDiscrete and Text, and Dict and Tuple of them; change it by a gymnasium wrapper"
    )


def _action_spec(space: "gymnasium.Space") -> specs.Array:
    from gymnasium import spaces

    match space:
        case spaces.Discrete():
            last = int(space.start + space.n - 1)
            return specs.BoundedArray((), np.int64, int(space.start), last, "action")
        case spaces.Box():
            return specs.BoundedArray(space.shape, space.dtype, space.low, space.high, "action")
    raise faults.RefusedError(
        f"its action is a {type(space).__name__}: agents take Discrete, or Box of floats with "
        "finite bounds; change it by a gymnasium wrapper"
    )


def _has_starts(space: "gymnasium.Space") -> bool:
    """Whether some `Discrete` or `MultiDiscrete` does not begin at 0."""
    if hasattr(space, "spaces"):
        parts = space.spaces.values() if isinstance(space.spaces, Mapping) else space.spaces
        return any(map(_has_starts, parts))
    return bool(np.any(getattr(space, "start", 0)))


def _firsts(space: "gymnasium.Space") -> Iterator[Any]:
    """Of a space's leaves in their order: an integer, or a list of the shape that agents see."""
    if not hasattr(space, "spaces"):
        first = np.asarray(getattr(space, "start", 0))
        yield (first.reshape(-1) if first.ndim else first).tolist() if first.any() else 0
        return
    is_named = isinstance(space.spaces, Mapping)
    for key in sorted(space.spaces) if is_named else range(len(space.spaces)):
        yield from _firsts(space.spaces[key])


def _from_zero(space: "gymnasium.Space", value: Any) -> Any:
    """An observation whose integers begin at 0; what does not fit its space is left as it is."""
    if hasattr(space, "spaces"):
        if isinstance(space.spaces, Mapping) and isinstance(value, Mapping):
            known = space.spaces
            return {k: _from_zero(known[k], v) if k in known else v for k, v in value.items()}
        if isinstance(value, tuple | list) and len(value) == len(space.spaces):
            return tuple(map(_from_zero, space.spaces, value))
        return value
    return value - space.start if np.any(getattr(space, "start", 0)) else value

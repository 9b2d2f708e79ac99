"""Functions of users that return an environment: the suites `dm_env` and `tf_agents`.

Only workers call these functions. The user's module loads TF-Agents and TensorFlow.
"""

import contextlib
import dataclasses
import re
import sys
from collections.abc import Mapping
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from laser_tf import errors
from laser_tf.environments import adapter, faults, python_config

_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FunctionConfig(python_config.PythonConfig):
    """Configuration of functions, named as `module:function`, that return an environment.

    The function gets `arguments`, and `seed` if it has such a parameter.
    """

    def check_task(self, task: str) -> str:
        """Checks the form only, because user code runs in workers only."""
        if not _PATH.fullmatch(task):
            raise errors.ConfigError(
                f"task must be module:function with suite={self.suite}, got {task!r}. Use e.g. "
                "my_module:make."
            )
        return task

    def user_code(self) -> tuple[str, ...]:
        """See `EnvironmentConfig`."""
        return super().user_code() or self.tasks


@dataclasses.dataclass(frozen=True, kw_only=True)
class DmEnvConfig(FunctionConfig):
    """Configuration of functions that return a `dm_env.Environment`."""

    suite: str = "dm_env"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TFAgentsConfig(FunctionConfig):
    """Configuration of functions that return a `PyEnvironment`."""

    suite: str = "tf_agents"


def is_py_environment(environment: Any) -> bool:
    """Returns whether an object is a `PyEnvironment`, without loading TF-Agents."""
    module = sys.modules.get("tf_agents.environments.py_environment")
    return module is not None and isinstance(environment, module.PyEnvironment)


class TFAgents(adapter.Adapter):
    """One `PyEnvironment`, whose time steps have the fields of dm_env's.

    Raises:
      UnsupportedSpaceError: For a batch of environments, or specs of another kind.
    """

    def __init__(self, name: str, environment: Any, seed: int):
        """Seeds the environment, if it can be seeded; `name` is for messages."""
        if environment.batched:
            raise faults.UnsupportedSpaceError(
                f"{name} returned a batch of {environment.batch_size}: return one environment, and "
                "set environment.num_envs"
            )
        observation_spec = _spec(environment.observation_spec())
        super().__init__(environment, observation_spec, _spec(environment.action_spec()))
        with contextlib.suppress(NotImplementedError):  # The user's function may have taken it.
            environment.seed(seed)

    def reset(self) -> dm_env.TimeStep:
        """See `dm_env.Environment`."""
        return self._engine.reset()

    def step(self, action: Any) -> dm_env.TimeStep:
        """See `dm_env.Environment`."""
        return self._engine.step(action)

    def render(self) -> np.ndarray:
        """Returns the rendered image."""
        return np.asarray(self._engine.render("rgb_array"))


def _spec(spec: Any) -> Any:
    """Converts a nest of array specs of TF-Agents to specs of dm_env."""
    if isinstance(spec, Mapping):
        return {key: _spec(part) for key, part in spec.items()}
    if isinstance(spec, tuple | list):
        return tuple(map(_spec, spec))
    if not hasattr(spec, "shape") or not hasattr(spec, "dtype"):
        raise faults.UnsupportedSpaceError(
            f"its specs hold a {type(spec).__name__}: agents read ArraySpec and BoundedArraySpec"
        )
    shape, dtype, name = tuple(spec.shape), np.dtype(spec.dtype), spec.name or "observation"
    if hasattr(spec, "minimum"):
        return specs.BoundedArray(shape, dtype, spec.minimum, spec.maximum, name)
    return specs.Array(shape, dtype, name)

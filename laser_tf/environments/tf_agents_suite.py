"""TF-Agents' environments: `task=my_module:make`, a function that returns a `PyEnvironment`.

TF-Agents and TensorFlow are loaded by the user's module, in workers only.
"""

import contextlib
import dataclasses
import os
import sys
from collections.abc import Mapping
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from laser_tf.environments import faults, python_config, user_modules


@dataclasses.dataclass(frozen=True, kw_only=True)
class TFAgentsConfig(python_config.FunctionConfig):
    """Of functions that return a `PyEnvironment`."""

    suite: str = "tf_agents"

    @staticmethod
    def call(path: str, arguments: dict[str, Any], seed: int) -> dm_env.Environment:
        """See `FunctionConfig`."""
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the learner's
        environment = user_modules.call(path, arguments, seed)
        module = sys.modules.get("tf_agents.environments.py_environment")
        if module is None or not isinstance(environment, module.PyEnvironment):
            raise faults.RefusedError(
                f"{path} returned a {type(environment).__name__}, not a TF-Agents PyEnvironment"
            )
        if environment.batched:
            raise faults.RefusedError(
                f"{path} returned a batch of {environment.batch_size}: return one environment, "
                "environment.num_envs says how many are made"
            )
        return TFAgents(environment, seed)


class TFAgents(dm_env.Environment):
    """One `PyEnvironment`, whose time steps are dm_env's by other classes."""

    def __init__(self, environment: Any, seed: int):
        """Seeds the environment, if it can be.

        Raises:
          RefusedError: for specs of another kind.
        """
        self._environment = environment
        self._observation_spec = _spec(environment.observation_spec())
        self._action_spec = _spec(environment.action_spec())
        with contextlib.suppress(NotImplementedError):  # the user's function may have taken it
            environment.seed(seed)

    def reset(self) -> dm_env.TimeStep:
        """See `dm_env.Environment`."""
        return _time_step(self._environment.reset())

    def step(self, action: Any) -> dm_env.TimeStep:
        """See `dm_env.Environment`."""
        return _time_step(self._environment.step(action))

    def observation_spec(self) -> Any:
        """See `dm_env.Environment`."""
        return self._observation_spec

    def action_spec(self) -> Any:
        """See `dm_env.Environment`."""
        return self._action_spec

    def render(self) -> np.ndarray:
        """Its picture."""
        return np.asarray(self._environment.render("rgb_array"))

    def close(self) -> None:
        """See `dm_env.Environment`."""
        self._environment.close()


def _time_step(time_step: Any) -> dm_env.TimeStep:
    return dm_env.TimeStep(
        time_step.step_type,
        time_step.reward,
        time_step.discount,
        time_step.observation,
    )


def _spec(spec: Any) -> Any:
    """A nest of TF-Agents' array specs as dm_env's."""
    if isinstance(spec, Mapping):
        return {key: _spec(part) for key, part in spec.items()}
    if isinstance(spec, tuple | list):
        return tuple(map(_spec, spec))
    if not hasattr(spec, "shape") or not hasattr(spec, "dtype"):
        raise faults.RefusedError(
            f"its specs hold a {type(spec).__name__}: agents read ArraySpec and BoundedArraySpec"
        )
    shape, dtype, name = tuple(spec.shape), np.dtype(spec.dtype), spec.name or "observation"
    if hasattr(spec, "minimum"):
        return specs.BoundedArray(shape, dtype, spec.minimum, spec.maximum, name)
    return specs.Array(shape, dtype, name)

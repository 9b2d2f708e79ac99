"""Functions of users that create an environment and exist in no module, e.g. of a notebook.

The configuration of a run holds the pickled function, so that workers, evaluations and resumed runs
in other processes have it.
"""

import base64
import dataclasses
import os
import pickle
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import dm_env

from laser_tf import errors
from laser_tf.environments import faults, suites, user_modules

if TYPE_CHECKING:  # It imports this module.
    from laser_tf.environments import environment_config

_VECTOR = "gymnasium_vector"
_SUITES = ("gymnasium", "dm_env", "tf_agents", _VECTOR)
_MAX_BYTES = 1_000_000  # `config.json` holds the function.


def configure(
    config: "environment_config.EnvironmentConfig", function: Callable[..., Any]
) -> "environment_config.EnvironmentConfig":
    """Returns a configuration whose environments a function creates.

    The function gets `arguments`, and `seed` if it has such a parameter. Its name is the task. A
    function with a parameter `num_envs` returns a vector environment, see `vector_suite`.

    Args:
      config: Configuration of the suite gymnasium, dm_env, tf_agents or gymnasium_vector.
      function: Returns an environment of gymnasium, dm_env or TF-Agents.

    Raises:
      ConfigError: For another suite, or a function that cannot be pickled or is too large.
    """
    import cloudpickle  # Imports much of the standard library.

    if config.suite not in _SUITES:
        raise errors.ConfigError(
            f"environment.suite must be {', '.join(_SUITES[:-1])} or {_SUITES[-1]} with a function "
            f"that creates environments, got {config.suite!r}. Use a configuration with such a "
            'suite, e.g. "laser:gymnasium".'
        )
    if not callable(function):
        raise errors.ConfigError(
            "environment must be a function that returns an environment, got a "
            f"{type(function).__name__}. Pass a function, e.g. lambda: MyEnvironment()."
        )
    name = re.sub(r"\W+", "_", getattr(function, "__name__", type(function).__name__)).strip("_")
    try:
        pickled = cloudpickle.dumps(function)
    except Exception as error:  # Objects of users raise anything.
        raise errors.ConfigError(
            f"environment must be a function that can be pickled, got {name}: "
            f"{type(error).__name__}: {errors.one_line(error, 200)}. Create such objects inside "
            "the function."
        ) from None
    if len(pickled) > _MAX_BYTES:
        raise errors.ConfigError(
            f"environment must have at most {_MAX_BYTES:,} bytes when pickled, got {name} with "
            f"{len(pickled):,}. Load data inside the function."
        )
    values: dict[str, Any] = {"task": name, "pickled_function": base64.b64encode(pickled).decode()}
    if config.suite == _VECTOR or not user_modules.has_parameter(function, "num_envs"):
        return dataclasses.replace(config, **values)
    kept = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    return suites.config_class(_VECTOR)(**{**kept, "suite": _VECTOR, **values})


def load(pickled: str) -> Callable[..., Any]:
    """Returns the function of a value of `pickled_function`, in a worker."""
    return pickle.loads(base64.b64decode(pickled))


def call(pickled: str, name: str, arguments: dict[str, Any], seed: int) -> dm_env.Environment:
    """Creates an environment, in a worker.

    Args:
      pickled: Value of `pickled_function`.
      name: Name of the function, for messages.
      arguments: Keyword arguments of the function.
      seed: Seed of the environment.

    Raises:
      UnsupportedSpaceError: If the function returns something else.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # For environments of TF-Agents.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    environment = user_modules.call_function(load(pickled), arguments, seed)
    if isinstance(environment, dm_env.Environment):
        return environment
    gymnasium = sys.modules.get("gymnasium")
    if gymnasium and isinstance(environment, gymnasium.vector.VectorEnv):
        raise faults.UnsupportedSpaceError(
            f"{name} returned a vector environment without a parameter num_envs: add the parameter"
        )
    if gymnasium and isinstance(environment, gymnasium.Env):
        from laser_tf.environments import gymnasium_adapter

        return gymnasium_adapter.Gymnasium(environment, seed)
    from laser_tf.environments import function_suites  # It imports this module.

    if function_suites.is_py_environment(environment):
        return function_suites.wrap_py_environment(name, environment, seed)
    raise faults.UnsupportedSpaceError(
        f"{name} returned a {type(environment).__name__}: return one environment of gymnasium, "
        "dm_env or TF-Agents"
    )

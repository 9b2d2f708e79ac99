"""Functions of users that create an environment, which are called in worker processes only."""

import base64
import dataclasses
import inspect
import os
import pickle
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import dm_env

from laser_tf import errors, user_code
from laser_tf.environments import faults, suites
from laser_tf.host import hardware

if TYPE_CHECKING:  # It imports this module.
    from laser_tf.environments import environment_config

_VECTOR = "gymnasium_vector"
_SUITES = ("gymnasium", "dm_env", "tf_agents", _VECTOR)
_EXPECTED = {"dm_env": "dm_env.Environment", "tf_agents": "TF-Agents PyEnvironment"}
_MAX_BYTES = 1_000_000  # `config.json` holds the function.


def configure(
    config: "environment_config.EnvironmentConfig", function: Callable[..., Any]
) -> "environment_config.EnvironmentConfig":
    """Returns a configuration whose environments a function creates.

    The function gets `arguments`, and `seed` if it has such a parameter. Its name is the task. A
    function with a parameter `num_envs` returns a vector environment, see `vector_suite`.

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
            "environment must be a function that returns an environment, got "
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
    if config.suite == _VECTOR or not has_parameter(function, "num_envs"):
        return dataclasses.replace(config, **values)
    return suites.config_class(_VECTOR)(**{**vars(config), "suite": _VECTOR, **values})


def call(
    pickled: str, name: str, arguments: dict[str, Any], suite: str, seed: int
) -> dm_env.Environment:
    """Creates an environment by a function of the user, in a worker.

    A function of `pickled_function` may return an environment of any library. If `pickled` is "",
    the path `name` must return an environment of `suite`, which is dm_env or tf_agents.

    Raises:
      UnsupportedSpaceError: If the function returns something else.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # For environments of TF-Agents.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    if suite == "tf_agents":  # Its TensorFlow would take the learner's memory.
        hardware.hide_gpus()
    function = load_function(name, pickled)
    environment = call_function(function, arguments, seed)
    accepted = _SUITES if pickled else (suite,)
    if "dm_env" in accepted and isinstance(environment, dm_env.Environment):
        return environment
    from laser_tf.environments import function_suites  # It imports this module.

    if "tf_agents" in accepted and function_suites.is_py_environment(environment):
        return function_suites.TFAgents(name, environment, seed)
    gymnasium = sys.modules.get("gymnasium") if "gymnasium" in accepted else None
    if gymnasium and isinstance(environment, gymnasium.vector.VectorEnv):
        raise faults.UnsupportedSpaceError(
            f"{name} must have a parameter num_envs, because it returned a vector environment. Add "
            "the parameter"
        )
    if gymnasium and isinstance(environment, gymnasium.Env):
        from laser_tf.environments import gymnasium_adapter

        return gymnasium_adapter.Gymnasium(environment, seed)
    expected = "environment of gymnasium, dm_env or TF-Agents" if pickled else _EXPECTED[suite]
    raise faults.UnsupportedSpaceError(
        f"{name} must return one {expected}, got {type(environment).__name__}"
    )


def load_function(path: str, pickled: str) -> Callable[..., Any]:
    """Returns the function of a path "module:name", or of a value of `pickled_function`.

    Raises:
      ConfigError: If the function or a module does not exist, or the function is not callable.
    """
    if pickled:
        try:
            return pickle.loads(base64.b64decode(pickled))
        except ModuleNotFoundError as error:  # Functions of modules are pickled by name.
            raise user_code.missing_module(error.name) from error
    module_name, _, name = path.partition(":")
    function = user_code.load_attribute(module_name, name, example=f"{module_name}:make")
    if not callable(function):
        raise faults.UnsupportedSpaceError(
            f"{path} must be a function that returns an environment, got {type(function).__name__}"
        )
    return function


def call_function(function: Callable[..., Any], arguments: dict[str, Any], seed: int) -> Any:
    """Calls a function, with `seed` if it has such a parameter."""
    if has_parameter(function, "seed"):
        arguments = {"seed": seed, **arguments}
    return function(**arguments)


def has_parameter(function: Callable[..., Any], name: str) -> bool:
    """Returns whether a function has a parameter; False for a C extension without signature."""
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False

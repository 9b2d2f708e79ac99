"""Trust in code of users, and calls of their functions, in worker processes only."""

import base64
import inspect
import pathlib
import pickle
from collections.abc import Callable, Collection
from typing import Any

from laser_tf import errors, user_code
from laser_tf.environments import faults

PICKLED = "a pickled function"  # In `EnvironmentConfig.user_code`.


class UntrustedError(errors.UserError):
    """A configuration file names code that the user did not name or trust."""


def check_trusted(source: pathlib.Path, code: Collection[str], named: Collection[str]) -> None:
    """Checks that the user named all code that a run's configuration file `source` would execute.

    Raises:
      UntrustedError: For code that is not in `named`; a pickled function cannot be named.
    """
    if unnamed := [path for path in code if path not in named or path == PICKLED]:
        raise UntrustedError(
            f"{source} names {', '.join(unnamed)}, code outside this package that would run with "
            "your permissions. Give --trust_config if you trust the author of that directory."
        )


def load_function(path: str, pickled: str = "") -> Callable[..., Any]:
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

"""Trust in code of users, and calls of their functions, in worker processes only."""

import inspect
import pathlib
from collections.abc import Callable, Collection
from typing import Any

from laser_tf import errors, user_code
from laser_tf.environments import faults

PICKLED = "a pickled function"  # In `EnvironmentConfig.user_code`.


class UntrustedError(errors.UserError):
    """A configuration file names code that the user did not name or trust."""


def check_trusted(source: pathlib.Path, code: Collection[str], named: Collection[str]) -> None:
    """Checks that the user named all code that a run's configuration file would execute.

    Args:
      source: The configuration file.
      code: Paths of that file, see `run_config.user_code_of` and `EnvironmentConfig.user_code`.
      named: Code that the user named, for example on the command line.

    Raises:
      UntrustedError: For code that is not in `named`.
    """
    # Nobody can know a pickled function by its name.
    if unnamed := [path for path in code if path not in named or path == PICKLED]:
        raise UntrustedError(
            f"{source} names {', '.join(unnamed)}, code outside this package that would run with "
            "your permissions. Give --trust_config if you trust the author of that directory."
        )


def call(path: str, arguments: dict[str, Any], seed: int) -> Any:
    """Calls the function of a path "module:name", with `seed` if it has such a parameter.

    For the errors see `load_function`.
    """
    return call_function(load_function(path), arguments, seed)


def load_function(path: str) -> Callable[..., Any]:
    """Returns the function of a path "module:name".

    Raises:
      ConfigError: If the function does not exist or is not callable.
    """
    module_name, _, name = path.partition(":")
    function = user_code.load_attribute(module_name, name, example=f"{module_name}:make")
    if not callable(function):
        raise faults.UnsupportedSpaceError(
            f"{path} is a {type(function).__name__}: name a function that returns an environment"
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

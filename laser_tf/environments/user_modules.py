"""Loads modules and calls functions of users, in worker processes only."""

import contextlib
import importlib
import inspect
import operator
import pathlib
from collections.abc import Callable, Collection
from types import ModuleType
from typing import Any

from laser_tf import errors
from laser_tf.environments import faults, suites

PICKLED = "a pickled function"  # In `EnvironmentConfig.user_code`.


class UntrustedError(errors.UserError):
    """A configuration file names code that the user did not name or trust."""


def check_trusted(source: pathlib.Path, code: Collection[str], named: Collection[str]) -> None:
    """Checks that the user named all code that a run's configuration file would execute.

    Args:
      source: The configuration file.
      code: Tasks of that file, see `EnvironmentConfig.user_code`.
      named: Tasks that the user named, for example on the command line.

    Raises:
      UntrustedError: For a task that is not in `named`.
    """
    # Nobody can know a pickled function by its name.
    if unnamed := [task for task in code if task not in named or task == PICKLED]:
        raise UntrustedError(
            f"environment.task in {source} names {', '.join(unnamed)}, code outside this package "
            "that would run with your permissions. Give --trust_config if you trust the author of "
            "that directory."
        )


def load_module(name: str) -> ModuleType:
    """Imports a module that is installed or in the current folder.

    Raises:
      UnsupportedSpaceError: If the module is missing. Errors of the module itself pass through.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise faults.UnsupportedSpaceError(
                f"{name} needs the package {error.name!r}, which is not installed"
            ) from error
        raise faults.UnsupportedSpaceError(
            f"there is no module {name!r}: install it, or start the command in its folder (this is "
            f"{pathlib.Path.cwd()})"
        ) from None


def load_attribute(module_name: str, name: str, example: str) -> Any:
    """Returns an attribute of a module of the user; its name may have dots.

    Raises:
      ConfigError: If the module or the attribute is missing. The message proposes close names, or
        else `example`.
    """
    module = load_module(module_name)
    try:
        return operator.attrgetter(name)(module)
    except AttributeError:
        public = [known for known in vars(module) if not known.startswith("_")]
        suites.check_name(f"name in {module_name}", name, public, example)
        raise


def call(path: str, arguments: dict[str, Any], seed: int) -> Any:
    """Calls the function of a path "module:name", with `seed` if it has such a parameter.

    Raises:
      ConfigError: If the function does not exist or is not callable.
    """
    module_name, _, name = path.partition(":")
    function = load_attribute(module_name, name, example=f"{module_name}:make")
    if not callable(function):
        raise faults.UnsupportedSpaceError(
            f"{path} is a {type(function).__name__}: name a function that returns an environment"
        )
    return call_function(function, arguments, seed)


def call_function(function: Callable[..., Any], arguments: dict[str, Any], seed: int) -> Any:
    """Calls a function, with `seed` if it has such a parameter."""
    with contextlib.suppress(TypeError, ValueError):  # A C extension has no signature.
        if "seed" in inspect.signature(function).parameters:
            arguments = {"seed": seed, **arguments}
    return function(**arguments)

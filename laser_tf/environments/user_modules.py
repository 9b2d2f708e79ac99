"""Loads what users name as "module:name", in worker processes only."""

import importlib
import inspect
import pathlib
import re
from collections.abc import Collection
from types import ModuleType
from typing import Any

from laser_tf import errors
from laser_tf.environments import faults, names

_MODULE = re.compile(r"[A-Za-z_][\w.]*")
_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class UntrustedError(errors.UserError):
    """A configuration file names code that the user has neither named nor trusted."""


def check_trusted(source: pathlib.Path, code: Collection[str], named: Collection[str]) -> None:
    """Checks that the user named all code that a run's configuration file would execute.

    Args:
      source: The configuration file.
      code: Tasks of that file, see `EnvironmentConfig.user_code`.
      named: Tasks that the user named, for example on the command line.

    Raises:
      UntrustedError: For a task that is not in `named`.
    """
    if unnamed := [task for task in code if task not in named]:
        raise UntrustedError(
            f"environment.task in {source} names {', '.join(unnamed)}, code outside this package "
            "that would run with your permissions. Give --trust_config if you trust the author of "
            "that run directory."
        )


def check_path(suite: str, path: str) -> str:
    """Returns a path "module:name".

    Args:
      suite: Suite of the path, for the message.
      path: Path to check.

    Raises:
      ValueError: For a text of another form.
    """
    if not _PATH.fullmatch(path):
        module = path if _MODULE.fullmatch(path) else "my_module"
        raise errors.ConfigError(f"use module:function with suite={suite}, e.g. {module}:make")
    return path


def load_module(name: str) -> ModuleType:
    """Imports a module that is installed or lies in the current folder.

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


def load(path: str) -> Any:
    """Returns the object that "module:name" names.

    Raises:
      UnsupportedSpaceError: where the module, or the name in it, does not exist.
    """
    module_name, _, name = path.partition(":")
    value = load_module(module_name)
    for part in name.split("."):
        if not hasattr(value, part):
            public = [known for known in vars(value) if not known.startswith("_")]
            try:
                names.check(f"name in {module_name}", part, public, example=f"{module_name}:make")
            except ValueError as error:
                raise faults.UnsupportedSpaceError(str(error)) from None
        value = getattr(value, part)
    if not callable(value):
        raise faults.UnsupportedSpaceError(
            f"{path} is a {type(value).__name__}: name a function that returns an environment"
        )
    return value


def takes_seed(function: Any) -> bool:
    """Returns whether a function has a parameter `seed`."""
    try:
        return "seed" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # of a C extension
        return False


def call(path: str, arguments: dict[str, Any], seed: int) -> Any:
    """Calls what "module:name" names, with `seed` if it has such a parameter.

    Raises:
      UnsupportedSpaceError: where it does not exist.
    """
    function = load(path)
    if takes_seed(function):
        arguments = {"seed": seed, **arguments}
    return function(**arguments)

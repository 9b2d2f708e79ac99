"""Code of users: whether it is trusted, and how it is found by its path "module:name".

Modules are installed or in the current folder.
"""

import importlib
import inspect
import operator
import pathlib
import re
from collections.abc import Collection
from types import ModuleType
from typing import Any, ClassVar, get_origin

from laser_tf import config_values, errors

PICKLED = "a pickled function"  # Without a path.
_PATH = re.compile(r"([\w.]+):([\w.]+)")


def is_path(name: Any) -> bool:
    """Returns whether a name is a path of user code, which has a colon, instead of a known name."""
    return isinstance(name, str) and ":" in name


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


def load_module(name: str) -> ModuleType:
    """Imports a module; raises ConfigError if it is missing, and errors of the module itself."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise errors.ConfigError(
                f"{name} needs the package {error.name!r}, which is not installed"
            ) from error
        if name.endswith(".py"):
            raise errors.ConfigError(
                f"there is no module {name!r}: use {name.removesuffix('.py')!r}, without .py"
            ) from None
        raise missing_module(name) from None


def missing_module(name: str | None) -> errors.ConfigError:
    """Returns the error of a module that Python does not find."""
    return errors.ConfigError(
        f"there is no module {name!r}: install it, or start the command in its directory (this is "
        f"{pathlib.Path.cwd()})"
    )


def load_attribute(module_name: str, name: str, example: str) -> Any:
    """Returns an attribute of a module of the user; its name may have dots.

    If the module or the attribute is missing, raises ConfigError, which proposes close names or
    else `example`.
    """
    module = load_module(module_name)
    try:
        return operator.attrgetter(name)(module)
    except AttributeError:
        public = [known for known in vars(module) if not known.startswith("_")]
        hint = config_values.hint(name, public, example)
        raise errors.ConfigError(f"module {module_name} has no {name!r}: {hint}") from None


def load_class(key: str, path: str, base: type) -> Any:
    """Returns the class of a path "module:Class", which is the value of a configuration key.

    Raises:
      ConfigError: If the path has another form, the class is missing, is no subclass of `base` or
        lacks an abstract method. Errors of the module itself pass through.
    """
    match = _PATH.fullmatch(path)
    if not match:
        raise errors.ConfigError(
            f"{key} must be module:Class, got {path!r}. Use e.g. {key}=my_module:MyClass."
        )
    module_name, name = match.groups()
    try:
        found = load_attribute(module_name, name, example=f"{module_name}:MyClass")
    except errors.ConfigError as error:
        raise errors.ConfigError(f"{key} must name a class, got {path!r}: {error}") from None
    required = f"{base.__module__}.{base.__name__}"
    if not (isinstance(found, type) and issubclass(found, base)):
        kind = "class of another kind" if isinstance(found, type) else type(found).__name__
        raise errors.ConfigError(
            f"{key} must name a subclass of {required}, got {path!r}, a {kind}. Derive the class "
            "from it."
        )
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        owner = next(part for part in reversed(found.__mro__) if missing[0] in vars(part))
        raise errors.ConfigError(
            f"{key} must name a class with all methods of {owner.__module__}.{owner.__name__}, got "
            f"{path!r}. Define {', '.join(missing)}."
        )
    return found


def check_parameters(
    key: str, path: str, form: str, function: Any, *positional: Any, **keywords: Any
) -> None:
    """Raises ConfigError unless a function of the user can be called with these arguments.

    The message names the key of the configuration, the path of the class, which is its value, and
    the required signatures, `form`.
    """
    try:
        inspect.signature(function).bind(*positional, **keywords)
    except TypeError as error:
        raise errors.ConfigError(
            f"{key} must have {form}, got {path!r}: {error}. Change its signature."
        ) from None


def check_decorated(key: str, path: str, config_class: type, base: type) -> None:
    """Raises ConfigError if a configuration class with fields is no dataclass: they would be lost.

    The message names the key of the configuration and the path of the class, which is its value.
    `base` is the dataclass that all configuration classes derive from.
    """
    for part in config_class.__mro__:
        if "__dataclass_fields__" in vars(part) or not issubclass(part, base):
            continue
        for name, annotation in inspect.get_annotations(part).items():
            if not _is_class_variable(annotation):
                raise errors.ConfigError(
                    f"{key} must have a dataclass for its keys, got {path!r}: {part.__name__} "
                    f"defines {name}. Decorate {part.__name__} with "
                    "@dataclasses.dataclass(frozen=True, kw_only=True)."
                )


def _is_class_variable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return "ClassVar" in annotation
    return annotation is ClassVar or get_origin(annotation) is ClassVar

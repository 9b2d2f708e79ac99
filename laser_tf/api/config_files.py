"""Configuration files: their names, how they are loaded, and overrides of their values."""

import contextlib
import os
import pathlib
import runpy
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

import ml_collections

from laser_tf import config_values, errors, installed_commands
from laser_tf.training import config_choices, run_config

_ROOT = installed_commands.IMPORT_FOLDER  # directory of configs/
_PACKAGE = "configs"
_import_lock = threading.RLock()  # `_importable_configs` changes the modules of all threads.


def load_config(
    name: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None
) -> run_config.RunConfig:
    """Returns the configuration of a run.

        laser_tf.load_config("laser:gymnasium", {"environment.task": "Acrobot-v1"})

    Args:
      name: Name of a configuration, e.g. "laser:gymnasium", or path of a file that defines
        `get_config`.
      overrides: Values by key, "section.key", e.g. {"run.env_frames": 100_000}.

    Raises:
      UserError: If the file is missing, cannot be run or defines no configuration.
      ConfigError: For an unknown key or an invalid value.
    """
    values = load(os.fspath(name)).to_dict()
    run_config.check_nesting(values)
    if "sweep" in values:
        raise errors.ConfigError(
            f"name must be the configuration of a run, got {name}, a sweep. Use launch.sweep."
        )
    changes = overrides or {}
    for key in changes:  # `run_config.parse` reports unknown sections and keys.
        if "." not in key:
            raise errors.ConfigError(f"{key} must be SECTION.KEY.")
    return run_config.parse(config_choices.override(values, changes))


def load(given: str, argument: str = "name") -> ml_collections.ConfigDict:
    """Returns the configuration of a name or a file; for the errors see `load_config`.

    Args:
      given: Path or name of a file, e.g. "configs/laser.py:catch" or "laser:catch". The project's
        own files are found from any directory. The part after the colon is the argument of the
        file's `get_config`.
      argument: Name of the argument or flag, for messages.
    """
    path, arguments = _find(given)
    if not path:
        close = " or ".join(_close_variants(given)) or "a file of configs/"
        raise errors.UserError(f"{argument} must name a configuration, got {given}. Use {close}.")
    try:
        with _importable_configs():
            get_config = runpy.run_path(path).get("get_config")
            config = get_config and get_config(*arguments)
    except (Exception, SystemExit) as error:  # The user's code may raise anything.
        raise errors.UserError(
            f"cannot load {argument}={given}: {_describe_failure(error, path)}"
        ) from None
    if not isinstance(config, ml_collections.ConfigDict):
        raise errors.UserError(
            f"cannot load {argument}={given}: it must define a get_config() that returns an "
            f"ml_collections.ConfigDict, got {type(config).__name__}"
        )
    return config


def _find(given: str) -> tuple[str, list[str]]:
    """Returns the path of a file, "" if it is missing, and the arguments of its `get_config`."""
    own = _ROOT / _PACKAGE
    for name, *arguments in ([given], given.split(":", 1), given.rsplit(":", 1)):
        for path in (pathlib.Path(expand_home(name)), _ROOT / name, own / name, own / f"{name}.py"):
            if path.is_file():
                return str(path), arguments
    return "", []


def expand_home(path: str) -> str:
    """Returns a path with the home directory for `~/`, which a shell leaves in `--flag=~/name`."""
    return str(pathlib.Path(path).expanduser()) if path.startswith("~/") else path


@contextlib.contextmanager
def _importable_configs() -> Iterator[None]:
    """Makes `import configs` find the package of this project, whose files import each other.

    A program that uses this library may have its own package `configs`.
    """
    with _import_lock:
        loaded = sys.modules.get(_PACKAGE)
        if loaded and str(_ROOT / _PACKAGE) in map(str, getattr(loaded, "__path__", ())):
            yield
            return
        others = _pop_configs()
        sys.path.insert(0, str(_ROOT))
        try:
            yield
        finally:
            sys.path.remove(str(_ROOT))
            _pop_configs()
            sys.modules.update(others)


def _pop_configs() -> dict[str, Any]:
    names = [name for name in list(sys.modules) if name.partition(".")[0] == _PACKAGE]
    return {name: sys.modules.pop(name) for name in names}


def _describe_failure(error: BaseException, path: str) -> str:
    if isinstance(error, SyntaxError) and error.filename == path:
        return f"line {error.lineno}: SyntaxError: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == path]
    where = f"line {lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}: {errors.one_line(error)}"


def variants() -> list[str]:
    """Returns all configurations of `configs/`, e.g. "laser:atari"."""
    with _importable_configs():
        return [
            f"{path.stem}:{variant}"
            for path in sorted((_ROOT / _PACKAGE).glob("[!_]*.py"))
            for variant in runpy.run_path(str(path)).get("VARIANTS", ())
        ]


def _close_variants(given: str) -> list[str]:
    """Returns up to three of `variants` that resemble a configuration without a file."""
    path, _, variant = given.partition(":")
    name = "_".join(filter(None, (pathlib.Path(path).stem, variant)))
    known = {known.replace(":", "_"): known for known in variants()}
    close = [name] if name in known else config_values.close_names(name, known)
    return [known[name] for name in close]

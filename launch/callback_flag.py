"""The flag `--callbacks=module:Class(key=value, ...)`."""

import inspect
import re
from collections.abc import Sequence

from laser_tf import user_code
from laser_tf.environments import python_config
from laser_tf.training import callbacks
from launch import command_line

_ENTRY = re.compile(r"([\w.]+):([\w.]+)(?:\((.*)\))?", re.DOTALL)


def make(entries: Sequence[str]) -> list[callbacks.Callback]:
    """Creates the callbacks of a command line, in their order.

    Args:
      entries: Values of the flag. A module is installed or in the current folder.

    Raises:
      UsageError: If an entry has another form, names something else than a callback, or has
        arguments that do not fit.
      ConfigError: If the module or the class is missing. Other errors of user code pass through.
    """
    return [_make(entry) for entry in entries]


def _make(entry: str) -> callbacks.Callback:
    match = _ENTRY.fullmatch(entry)
    if not match:
        raise command_line.UsageError(
            f"--callbacks must be module:Class or module:Class(key=value, ...), got {entry}. Use "
            "e.g. --callbacks=laser_tf.callbacks:KeepBest."
        )
    module_name, name, given = match.groups()
    made = user_code.load_attribute(module_name, name, example=f"{module_name}:MyCallback")
    arguments = python_config.parse_arguments(given or "")
    if callable(made):
        try:
            inspect.signature(made).bind(**arguments)
        except TypeError as error:
            raise command_line.UsageError(
                f"--callbacks must give the arguments of {name}, got {entry}: {error}."
            ) from None
        made = made(**arguments)
    if not isinstance(made, callbacks.Callback):
        raise command_line.UsageError(
            f"--callbacks must name a subclass of laser_tf.callbacks.Callback, got {entry}, a "
            f"{type(made).__name__}. Derive the class from it."
        )
    return made

"""The directory of `launch` and `configs`, which pip installs inside of laser_tf."""

import os
import pathlib
from collections.abc import Iterable

_PACKAGE = pathlib.Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "commands"

IMPORT_FOLDER = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent


def without(paths: Iterable[str]) -> list[str]:
    """Returns import paths without those that lead to the modules of the commands.

    A user's code may have its own `launch` and `configs`. The root of the sources stays: it holds
    laser_tf as well.
    """
    # Ray adds the folder of the command's own file to the path of each of its workers.
    hidden = {IMPORT_FOLDER / "launch"} | ({_INSTALLED} if IMPORT_FOLDER == _INSTALLED else set())
    return [path for path in paths if not path or pathlib.Path(path).resolve() not in hidden]


def environment() -> dict[str, str]:
    """Returns this process's environment variables, with a PYTHONPATH as `without` returns it."""
    variables = dict(os.environ)
    if "PYTHONPATH" in variables:
        variables["PYTHONPATH"] = os.pathsep.join(
            without(variables["PYTHONPATH"].split(os.pathsep))
        )
    return variables

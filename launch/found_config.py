"""Where a configuration's file is: one of the user's, or one that comes with the commands."""

import pathlib
from typing import Any

from ml_collections.config_flags import config_flags

_ROOT = pathlib.Path(__file__).resolve().parents[1]  # of launch/ and configs/, wherever they are


def find(given: str) -> str:
    """The file that `--config` names.

    Args:
      given: a path, e.g. "configs/laser_catch.py", or a name, "laser_catch". After a colon may
        come an argument for the file's `get_config`.

    Returns:
      The path as it was given if there is such a file, or none at all; otherwise that of the one
      beside `launch/`, so that commands find it from any folder.
    """
    path, separator, argument = given.partition(":")
    if pathlib.Path(path).is_file():
        return given
    for own in (_ROOT / path, _ROOT / "configs" / path, _ROOT / "configs" / f"{path}.py"):
        if own.is_file():
            return f"{own}{separator}{argument}"
    return given


class Parser(config_flags.ConfigFileFlagParser):
    """Reads the file that `find` finds."""

    def parse(self, path: str) -> Any:
        """The configuration of a file or name."""
        return super().parse(find(path))

"""Checks that the sections of a configuration share."""

from collections.abc import Collection
from typing import Any


def check_choice(config: Any, name: str, choices: Collection[str]) -> None:
    """Holds a field to a few names.

    Args:
      config: the section, a dataclass.
      name: of the field.
      choices: what it may be.

    Raises:
      ValueError: for anything else; the message names the choices.
    """
    value = getattr(config, name)
    if value not in choices:
        raise ValueError(f"{name} is {value!r}: choose one of {', '.join(map(repr, choices))}")

"""Checks that the sections of a configuration share: each says what was wrong and what to do."""

import dataclasses
import math
import types
import typing
from collections.abc import Collection, Mapping
from typing import Any

from laser_tf import errors

# What TensorFlow computes with: beyond them float32 is infinite, or a number but 0 becomes 0.
LARGEST_FLOAT, SMALLEST_FLOAT = 3.4028234663852886e38, 1.1754943508222875e-38
LARGEST_INTEGER = 2**63 - 1  # of TensorFlow's and Reverb's counters
_EXAMPLES = {bool: "True or False", str: "text", Mapping: "names with their values"}


def check_types(config: Any) -> None:
    """Holds each field to its type, and numbers to what float32 and int64 can hold.

    A whole number that is written as a float, as 1e5, becomes an int in a field of that type.

    Args:
      config: a section, a dataclass.

    Raises:
      ValueError: for the first field that holds something else.
    """
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.type is int and type(value) is float and value.is_integer():
            value = int(value)
            object.__setattr__(config, field.name, value)
        _check_type(field.name, value, field.type)


def _check_type(name: str, value: Any, expected: Any) -> None:
    origin = typing.get_origin(expected) or expected
    if origin is types.UnionType:
        _check_union(name, value, typing.get_args(expected))
    elif origin is tuple:
        if not isinstance(value, tuple | list):
            raise errors.ConfigError(f"{name} is {value!r}: use a tuple of values, e.g. ()")
        for element in value:
            _check_type(name, element, typing.get_args(expected)[0])
    elif origin is float:
        check_number(name, value)
    elif origin is int:
        if type(value) is not int:  # True is an int, too
            raise errors.ConfigError(f"{name} is {value!r}: use a whole number")
        if abs(value) > LARGEST_INTEGER:
            raise errors.ConfigError(
                f"{name} is {value}: use {LARGEST_INTEGER} or less, all that is counted"
            )
    else:
        _check_instance(name, value, expected)


def _check_instance(name: str, value: Any, expected: Any) -> None:
    parts = typing.get_args(expected) if isinstance(expected, types.UnionType) else (expected,)
    kinds = [typing.get_origin(part) or part for part in parts]
    if not isinstance(value, tuple(kinds)):
        examples = ", or ".join(_EXAMPLES[kind] for kind in kinds)
        raise errors.ConfigError(f"{name} is {value!r}: use {examples}")


def _check_union(name: str, value: Any, expected: tuple[Any, ...]) -> None:
    origins = tuple(typing.get_origin(one) or one for one in expected)
    if not isinstance(value, origins):
        examples = " or ".join(_EXAMPLES[origin] for origin in origins)
        raise errors.ConfigError(f"{name} is {value!r}: use {examples}")


def check_number(name: str, value: Any) -> None:
    """Holds a value to the finite numbers of float32.

    Args:
      name: for the message.
      value: anything.

    Raises:
      ValueError: if it is another type, not finite, or too large or too small for float32.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise errors.ConfigError(f"{name} is {value!r}: use a number")
    # Compared, since an int may be too large for a float.
    if not abs(value) <= LARGEST_FLOAT:
        raise errors.ConfigError(
            f"{name} is {value}: use a finite value that float32 holds, up to 3e38"
        )
    if value and abs(value) < SMALLEST_FLOAT:
        raise errors.ConfigError(
            f"{name} is {value}: float32 makes it 0; use 0, or 2e-38 or more in size"
        )


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
        raise errors.ConfigError(
            f"{name} is {value!r}: choose one of {', '.join(map(repr, choices))}"
        )


def check_range(
    config: Any, name: str, least: float, most: float = math.inf, reason: str = ""
) -> None:
    """Holds a field to a range, both ends included.

    Args:
      config: the section, a dataclass.
      name: of the field.
      least: that it may be.
      most: that it may be.
      reason: why not more.

    Raises:
      ValueError: for a value outside.
    """
    value = getattr(config, name)
    if value < least:
        raise errors.ConfigError(f"{name} is {value}: use {least} or more")
    if value > most:
        raise errors.ConfigError(f"{name} is {value}: use {most} or less; {reason}")

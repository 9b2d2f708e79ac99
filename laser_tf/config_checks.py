"""Checks of configuration values, shared by all sections of a configuration."""

import dataclasses
import math
import types
import typing
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from laser_tf import errors

# Range of normal float32 numbers: TensorFlow overflows to infinity above it and rounds to 0 below.
MAX_FLOAT32, MIN_FLOAT32 = 3.4028234663852886e38, 1.1754943508222875e-38
MAX_INT64 = 2**63 - 1  # of counters in TensorFlow and Reverb
# Types of which a field may have several, with their descriptions.
_DESCRIPTIONS = {bool: "True or False", str: "text", Mapping: "a mapping of names to values"}


def check_types(config: Any) -> None:
    """Raises ConfigError unless fields of a dataclass have their types and fit float32 or int64.

    Converts values in place that fit the type of their field. These are numbers of NumPy, integral
    floats such as 1e5 in an integer field, integers in a float field, and lists in a tuple field.
    """
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if isinstance(field.type, str):  # A class of a user.
            raise errors.ConfigError(
                f"{field.name} must have a type as annotation, got the text {field.type!r}. Remove "
                "from __future__ import annotations."
            )
        if not _is_supported(field.type):
            raise errors.ConfigError(
                f"{field.name} must have a type that a configuration supports, got {field.type}. "
                "Use bool, int, float, str, tuple[TYPE, ...], Mapping[str, Any] or e.g. bool | str."
            )
        value = _convert(value, field.type)
        object.__setattr__(config, field.name, value)
        _check_type(field.name, value, field.type)


def _convert(value: Any, expected: Any) -> Any:
    """Returns a value of the type `expected`, or the given value if `_check_type` rejects it."""
    if isinstance(value, np.generic):
        value = value.item()
    if typing.get_origin(expected) is tuple and isinstance(value, tuple | list):
        return tuple(_convert(element, typing.get_args(expected)[0]) for element in value)
    if expected is int and type(value) is float and value.is_integer():
        return int(value)
    # TensorFlow rejects integers among floats. Larger ones do not fit a float.
    if expected is float and type(value) is int and abs(value) <= MAX_FLOAT32:
        return float(value)
    return value


def _is_supported(expected: Any) -> bool:
    """Returns whether `_check_type` can check values of an annotated type."""
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if origin is tuple:
        return arguments[1:] == (...,) and arguments[0] in (bool, int, float, str)
    parts = arguments if origin is types.UnionType else (expected,)
    return expected in (int, float) or all(
        (typing.get_origin(part) or part) in _DESCRIPTIONS for part in parts
    )


def _check_type(name: str, value: Any, expected: Any) -> None:
    origin = typing.get_origin(expected) or expected
    if origin is tuple:
        if not isinstance(value, tuple | list):
            raise errors.ConfigError(f"{name} must be a tuple of values, got {value!r}.")
        for element in value:
            _check_type(name, element, typing.get_args(expected)[0])
    elif origin is float:
        check_number(name, value)
    elif origin is int:
        if type(value) is not int:  # isinstance would accept True
            raise errors.ConfigError(f"{name} must be an integer, got {value!r}.")
        if abs(value) > MAX_INT64:
            raise errors.ConfigError(f"{name} must be at most {MAX_INT64}, got {value}.")
    else:
        parts = typing.get_args(expected) if origin is types.UnionType else (expected,)
        origins = [typing.get_origin(part) or part for part in parts]
        if not isinstance(value, tuple(origins)):
            described = " or ".join(_DESCRIPTIONS[part] for part in origins)
            raise errors.ConfigError(f"{name} must be {described}, got {value!r}.")


def check_number(name: str, value: Any) -> None:
    """Raises ConfigError unless the value of key `name` is a number in the range of float32."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise errors.ConfigError(f"{name} must be a number, got {value!r}.")
    # A comparison also works for integers that are too large for a float.
    if value != 0 and not MIN_FLOAT32 <= abs(value) <= MAX_FLOAT32:
        raise errors.ConfigError(
            f"{name} must be 0 or of a size from 2e-38 to 3e38, the range of float32, got {value}."
        )


def check_choice(config: Any, name: str, choices: Collection[str]) -> None:
    """Raises ConfigError unless field `name` of a dataclass has one of the values `choices`."""
    value = getattr(config, name)
    if value not in choices:
        raise errors.ConfigError(
            f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}."
        )


def check_range(
    config: Any,
    name: str,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    reason: str = "",
    *,
    above: float = -math.inf,
    below: float = math.inf,
) -> None:
    """Raises ConfigError unless field `name` of a dataclass is within all bounds.

    `minimum` and `maximum` are inclusive bounds, `above` and `below` exclusive ones. `reason` is a
    clause for the error message that explains the upper bound.
    """
    value, reason = getattr(config, name), f": {reason}" if reason else ""
    for is_valid, bound, ending in (
        (value >= minimum, f"at least {minimum}", ""),
        (value <= maximum, f"at most {maximum}", reason),
        (value > above, f"above {above}", ""),
        (value < below, f"below {below}", reason),
    ):
        if not is_valid:
            raise errors.ConfigError(f"{name} must be {bound}, got {value}{ending}.")

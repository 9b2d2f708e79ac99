"""What a caller sent, read by type: a wrong value is refused before anything is kept of it."""

import math
from collections.abc import Mapping
from typing import Any

_LONGEST_TEXT = 200
_LARGEST = 2**62


def text(values: Mapping[str, Any], name: str) -> str:
    """A short text.

    Raises:
      ValueError: as all functions here, for a value that is missing or is something else.
    """
    value = values.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_TEXT:
        raise _wrong(name, value, f"a text of 1 to {_LONGEST_TEXT} characters")
    return value


def whole(values: Mapping[str, Any], name: str) -> int:
    """A count."""
    value = values.get(name)
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise _wrong(name, value, "a whole number from 0 on")
    return value


def number(values: Mapping[str, Any], name: str) -> float | None:
    """A finite number, or None where it is not known."""
    value = values.get(name)
    if value is not None and not _is_finite(value):
        raise _wrong(name, value, "a finite number or null")
    return value


def numbers(values: Mapping[str, Any], name: str) -> dict[str, float]:
    """Finite numbers by their names."""
    value = values.get(name)
    if not isinstance(value, dict) or not all(map(_is_finite, value.values())):
        raise _wrong(name, value, "an object of finite numbers")
    return value


def flag(values: Mapping[str, Any], name: str) -> bool:
    """A truth value; False where it is missing."""
    value = values.get(name, False)
    if type(value) is not bool:
        raise _wrong(name, value, "true or false")
    return value


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= _LARGEST and math.isfinite(value)


def _wrong(name: str, value: Any, wanted: str) -> ValueError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
    return ValueError(f"{name} is {shown}: a call to the sweep's server needs {wanted}")

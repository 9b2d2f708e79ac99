"""Checks of what a gymnasium environment returns, with messages that name the expected API."""

from collections.abc import Mapping
from typing import Any

import numpy as np

_STEP = "(observation, reward, terminated, truncated, info)"
_STEP_LENGTH = 5


def of_reset(result: Any) -> tuple[Any, Any]:
    """Returns observation and info of `reset`.

    Raises:
      ValueError: For anything but a pair, such as the observation alone.
    """
    if not isinstance(result, tuple | list) or len(result) != 2 or not _is_info(result[1]):
        raise ValueError(
            "its reset() must return (observation, info), with info a dictionary, got "
            f"{_describe(result)}. This is the API of gymnasium. Environments for gym before 0.26 "
            "return the observation alone: return it with {}"
        )
    return result[0], result[1]


def of_step(result: Any) -> tuple[Any, Any, bool, bool, Any]:
    """Returns the five values of `step`.

    Raises:
      ValueError: For another number of values, or if `terminated` or `truncated` is no bool.
    """
    if not isinstance(result, tuple | list) or len(result) != _STEP_LENGTH:
        raise ValueError(
            f"its step() must return {_STEP}, got {_describe(result)}. This is the API of "
            "gymnasium. Environments for gym before 0.26 return done: return terminated and "
            "truncated in its place"
        )
    observation, reward, terminated, truncated, info = result
    _check_flag("terminated", terminated)
    _check_flag("truncated", truncated)
    return observation, reward, terminated, truncated, info


def _is_info(value: Any) -> bool:
    return value is None or isinstance(value, Mapping)


def _describe(result: Any) -> str:
    if isinstance(result, tuple | list):
        kinds = ", ".join(type(value).__name__ for value in result[: _STEP_LENGTH + 1])
        return f"{len(result)} values ({kinds})" if len(result) != 1 else f"1 value ({kinds})"
    return f"a value of type {type(result).__name__}"


def _check_flag(name: str, value: Any) -> None:
    """Raises ValueError unless the value is a bool: texts and None have a truth value, too."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"its {name} must be a bool, got {value!r}. Return bool({name})")

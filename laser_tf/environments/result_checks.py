"""Checks of what user environments return, with messages that name the expected values."""

from collections.abc import Mapping
from typing import Any

import dm_env
import numpy as np

_GYMNASIUM_STEP = "(observation, reward, terminated, truncated, info)"
_GYMNASIUM_STEP_LENGTH = 5


def gymnasium_reset(result: Any) -> tuple[Any, Any]:
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


def gymnasium_step(result: Any) -> tuple[Any, Any, bool, bool, Any]:
    """Returns the five values of `step`.

    Raises:
      ValueError: For another number of values, or if `terminated` or `truncated_ratios` is no bool.
    """
    if not isinstance(result, tuple | list) or len(result) != _GYMNASIUM_STEP_LENGTH:
        raise ValueError(
            f"its step() must return {_GYMNASIUM_STEP}, got {_describe(result)}. This is the API "
            "of gymnasium. Environments for gym before 0.26 return done: return terminated and "
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
        kinds = ", ".join(type(value).__name__ for value in result[: _GYMNASIUM_STEP_LENGTH + 1])
        return f"{len(result)} values ({kinds})" if len(result) != 1 else f"1 value ({kinds})"
    return f"a value of type {type(result).__name__}"


def _check_flag(name: str, value: Any) -> None:
    """Raises ValueError unless the value is a bool: texts and None have a truth value, too."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"its {name} must be a bool, got {value!r}. Return bool({name})")


def time_step(result: Any, *, starts: bool) -> tuple[float, float, bool]:
    """Returns reward and discount of a dm_env time step, and whether it is the last one.

    Args:
      result: Time step of dm_env or TF-Agents.
      starts: Whether `reset` returned it; then the reward is 0 and the discount is 1.

    Raises:
      ValueError: If the time step has another type, or a value that is no number or out of range.
    """
    step_type = _step_type(result)
    is_first = step_type == dm_env.StepType.FIRST
    if is_first != starts:
        method = "reset" if starts else "step"
        raise ValueError(f"its {method}() returned a time step of {result.step_type}")
    if starts:
        return 0.0, 1.0, False
    reward = _number("reward", result.reward)
    discount = _number("discount", result.discount)
    if discount < 0 or discount > 1:  # The parent finds NaN.
        raise ValueError(f"its discount is {discount}: use values from 0 to 1")
    return reward, discount, step_type == dm_env.StepType.LAST


def _step_type(result: Any) -> dm_env.StepType:
    """Returns a time step's type; raises ValueError unless it is an integer from 0 to 2."""
    step_type = result.step_type
    if not isinstance(step_type, dm_env.StepType):
        array = np.asarray(step_type)  # TF-Agents' step types are arrays of rank 0.
        if array.shape or array.dtype.kind not in "iu" or not 0 <= array <= 2:
            raise ValueError(
                f"its step_type must be an integer from 0 to 2, got {step_type!r}. "
                "Return dm_env.StepType.FIRST, MID or LAST"
            )
        step_type = dm_env.StepType(int(array))
    return step_type


def _number(name: str, value: Any) -> float:
    if not isinstance(value, float):
        array = np.asarray(value)
        if array.shape or array.dtype.kind not in "buif":
            raise ValueError(f"its {name} is {array.dtype}{list(array.shape)}, not a number")
    return float(value)


def rgb_image(image: np.ndarray) -> np.ndarray:
    """Returns an image as uint8 [H, W, 3]; transparency is dropped.

    Args:
      image: uint8 [H, W] or [H, W, 1] (grayscale), [H, W, 3] (RGB) or [H, W, 4] (RGBA).

    Raises:
      ValueError: For any other array, or for an image without pixels.
    """
    channels = image[..., None] if image.ndim == 2 else image
    is_image = channels.ndim == 3 and channels.shape[2] in (1, 3, 4) and channels.size
    if channels.dtype != np.uint8 or not is_image:
        raise ValueError(
            "an image must be uint8 [height, width, channels] with 1, 3 or 4 channels, got "
            f"{image.dtype}{list(image.shape)}"
        )
    return np.repeat(channels, 3, axis=2) if channels.shape[2] == 1 else channels[..., :3]

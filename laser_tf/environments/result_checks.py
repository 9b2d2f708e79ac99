"""Checks of what user environments return, with messages that name the expected values."""

from collections.abc import Mapping
from typing import Any

import dm_env
import numpy as np

GYMNASIUM_API = (
    "The API of gymnasium is reset(seed=..., options=...) -> (observation, info) and step(action) "
    "-> (observation, reward, terminated, truncated, info); environments for gym before 0.26 "
    "return other values"
)


def gymnasium_reset(result: Any) -> Any:
    """Returns the observation of `reset`.

    Raises:
      ValueError: For anything but a pair, such as the observation alone.
    """
    is_pair = isinstance(result, tuple | list) and len(result) == 2
    if not is_pair or not isinstance(result[1], Mapping | None):
        raise ValueError(f"its reset() returned {_describe(result)}. {GYMNASIUM_API}")
    return result[0]


def gymnasium_step(result: Any) -> tuple[Any, Any, bool, bool]:
    """Returns observation, reward, `terminated` and `truncated` of `step`.

    Raises:
      ValueError: For another number of values, or if `terminated` or `truncated` is no bool.
    """
    if not isinstance(result, tuple | list) or len(result) != 5:
        raise ValueError(f"its step() returned {_describe(result)}. {GYMNASIUM_API}")
    observation, reward, terminated, truncated, _ = result
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        if not isinstance(flag, bool | np.bool_):  # Texts and None have a truth value, too.
            raise ValueError(f"its {name} must be a bool, got {flag!r}. Return bool({name})")
    return observation, reward, terminated, truncated


def _describe(result: Any) -> str:
    if isinstance(result, tuple | list):
        return f"{len(result)} values ({', '.join(type(value).__name__ for value in result[:6])})"
    return f"a value of type {type(result).__name__}"


def time_step(result: Any, *, starts: bool) -> tuple[float, float, bool]:
    """Returns reward and discount of a dm_env time step, and whether it is the last one.

    Args:
      result: Time step of dm_env or TF-Agents.
      starts: Whether `reset` returned it; then the reward is 0 and the discount is 1.

    Raises:
      ValueError: If the time step has another type, or a value that is no number or out of range.
    """
    step_type = _step_type(result)
    if (step_type == dm_env.StepType.FIRST) != starts:
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
    if isinstance(result.step_type, dm_env.StepType):
        return result.step_type
    array = np.asarray(result.step_type)  # TF-Agents' step types are arrays of rank 0.
    if array.shape or array.dtype.kind not in "iu" or not 0 <= array <= 2:
        raise ValueError(
            f"its step_type must be an integer from 0 to 2, got {result.step_type!r}. "
            "Return dm_env.StepType.FIRST, MID or LAST"
        )
    return dm_env.StepType(int(array))


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

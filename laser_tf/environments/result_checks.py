"""Checks of the time steps and images of user environments."""

from typing import Any

import dm_env
import numpy as np


def time_step(result: Any, *, starts: bool) -> tuple[float, float, bool]:
    """Returns reward and discount of a dm_env time step, and whether it is the last one.

    Args:
      result: Time step of dm_env or TF-Agents.
      starts: Whether `reset` returned it; then the reward is 0 and the discount is 1.

    Raises:
      ValueError: For an invalid step type, or values that are no numbers or out of range.
    """
    step_type = result.step_type
    if not isinstance(step_type, dm_env.StepType):
        step_type = dm_env.StepType(int(step_type))  # TF-Agents has arrays of rank 0.
    if (step_type == dm_env.StepType.FIRST) != starts:
        method = "reset" if starts else "step"
        raise ValueError(f"its {method}() returned a time step of {step_type}")
    if starts:
        return 0.0, 1.0, False
    try:
        reward, discount = float(result.reward), float(result.discount)
    except (TypeError, ValueError):
        raise ValueError(
            f"its reward and discount must be numbers, got {result.reward!r} and "
            f"{result.discount!r}"
        ) from None
    if discount < 0 or discount > 1:  # The parent finds NaN.
        raise ValueError(f"its discount must be from 0 to 1, got {discount}")
    return reward, discount, step_type == dm_env.StepType.LAST


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

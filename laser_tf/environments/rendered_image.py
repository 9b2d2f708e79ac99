"""Converts the images that environments render to RGB."""

import numpy as np


def to_rgb(image: np.ndarray) -> np.ndarray:
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

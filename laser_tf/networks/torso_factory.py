"""Creates torsos by name: those of this package, and those of users by path."""

import functools
import logging
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from dm_env import specs

from laser_tf import errors, user_code
from laser_tf.networks import torsos, trunk_config

_SIGNATURES = "__init__(self, channel_multiplier, center, dtype) and __call__(self, images)"


def make(
    name: str, channel_multiplier: int, center: bool, dtype: str, image: specs.Array
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Creates a torso of `torsos.TORSOS`, or that of a path "module:Class".

    Args:
      name: Key of the configuration.
      channel_multiplier: Factor of the channels.
      center: Whether to subtract the mean of each image.
      dtype: Compute dtype.
      image: Spec of an image [H, W, C].

    Raises:
      ConfigError: If images are too small for the torso, or if the class of a path is missing, has
        another signature or returns no features. Other errors of user code pass through.
    """
    if not user_code.is_path(name):
        trunk_config.check_image(name, image.shape)
        return torsos.TORSOS[name](channel_multiplier, center, dtype)
    torso_class = _load_class(name)
    arguments = {"channel_multiplier": channel_multiplier, "center": center, "dtype": dtype}
    # The signature of a class of `tf.Module` would be that of its metaclass.
    user_code.check_parameters(
        "agent.torso", name, _SIGNATURES, torso_class.__init__, None, **arguments
    )
    torso = torso_class(**arguments)
    user_code.check_parameters("agent.torso", name, _SIGNATURES, torso, None)
    features: Any = torso(tf.zeros([2, *image.shape], image.dtype))
    shape: Any = getattr(features, "shape", ())
    found = getattr(features, "dtype", None)
    if len(shape) != 2 or shape[0] != 2 or not getattr(found, "is_floating", False):
        raise errors.ConfigError(
            f"agent.torso must map images [N, H, W, C] to features [N, F] of floats, got {name!r}, "
            f"which maps {[2, *image.shape]} to {found} {list(shape)}. Reshape its result."
        )
    return torso


@functools.cache  # Several networks of a process have the same torso.
def check_unused(name: str) -> None:
    """Logs a warning for a torso "module:Class" if observations have no images.

    Raises:
      ConfigError: If the class is missing or of another kind.
    """
    if user_code.is_path(name):
        _load_class(name)
        logging.warning("agent.torso=%s is unused, because observations have no images", name)


def _load_class(name: str) -> Any:
    return user_code.load_class("agent.torso", name, tf.Module)

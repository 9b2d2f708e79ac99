"""All replay schemes by name; importing this module loads neither TensorFlow nor Reverb.

A scheme outside this package is named by its path "module:Class"; see docs/extending.md.
"""

import importlib
from typing import Any

from laser_tf import config_values, user_code
from laser_tf.replay.schemes import base

# Name -> "module:class" of this package.
_SCHEMES = {
    "online": "online:Online",
    "mixed": "mixed:Mixed",
    "episodes": "episodes:Episodes",
    "alternating": "alternating:Alternating",
    "replay_only": "replay_only:ReplayOnly",
    "sequences": "sequences:Sequences",
    "contextual": "contextual:Contextual",
}
DEFAULT = "mixed"


def names() -> tuple[str, ...]:
    """Returns the names of all schemes."""
    return tuple(_SCHEMES)


def config_class(scheme: str) -> type[base.ReplayScheme]:
    """Returns the class of a scheme; raises ConfigError if the name is unknown."""
    if user_code.is_path(scheme):
        scheme_base: Any = base.ReplayScheme  # mypy: it is abstract.
        found = user_code.load_class("scheme", scheme, scheme_base)
        user_code.check_decorated("scheme", scheme, found, scheme_base)
        return found
    config_values.check_name("scheme", scheme, names())  # It may be no text at all.
    module, name = _SCHEMES[scheme].split(":")
    return getattr(importlib.import_module(f"laser_tf.replay.schemes.{module}"), name)


def schemes_with(key: str) -> list[str]:
    """Returns the names of the schemes that have a key."""
    return [name for name in _SCHEMES if key in config_class(name).__dataclass_fields__]

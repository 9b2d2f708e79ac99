"""All suites by name, and checks of names; importing this module loads no suite.

A new suite is a line here and a module with its `EnvironmentConfig`, which makes its environments.
"""

import importlib
import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from laser_tf import config_values, errors

if TYPE_CHECKING:
    from laser_tf.environments import environment_config

# Name -> its configuration, as "module:class" of this package.
_SUITES = {
    "atari": "atari:AtariConfig",
    "minatar": "minatar:MinAtarConfig",
    "catch": "catch:CatchConfig",
    "tmaze": "tmaze:TMazeConfig",
    "vizdoom": "vizdoom:VizDoomConfig",
    "minigrid": "minigrid:MiniGridConfig",
    "dmlab": "dmlab:DMLabConfig",
    "dm_control": "dm_control_suite:DmControlConfig",
    "gymnasium": "gymnasium_suite:GymnasiumConfig",
    "dm_env": "function_suites:DmEnvConfig",
    "tf_agents": "function_suites:TFAgentsConfig",
}
SUITES = tuple(_SUITES)
DEFAULT = "atari"
_MAX_SUGGESTIONS = 3
_MIN_PART_LENGTH = 3  # characters; shorter texts are part of too many names


def config_class(suite: str) -> "type[environment_config.EnvironmentConfig]":
    """Returns the configuration class of a suite.

    Raises:
      ValueError: For an unknown suite; the message names close ones.
    """
    check_name("suite", suite, SUITES)
    module, name = _SUITES[suite].split(":")
    return getattr(importlib.import_module(f"laser_tf.environments.{module}"), name)


def check_name(what: str, name: str, known: Collection[str], example: str = "") -> str:
    """Returns a known name, and raises ValueError, with close names, for an unknown one.

    Args:
      what: Category of the name, for the message.
      name: Name to check.
      known: All valid names.
      example: Shown if no valid name is close; by default, all names are shown.
    """
    if name in known:
        return name
    text = str(name)  # A configuration may hold anything.
    close = config_values.close_names(text, known) if text else []
    if not close and len(text) >= _MIN_PART_LENGTH:
        close = [known_name for known_name in known if text.lower() in known_name.lower()]
    if not close and not example and len(known) <= _MAX_SUGGESTIONS:
        close = list(known)
    if close:
        hint = f"did you mean {' or '.join(close[:_MAX_SUGGESTIONS])}?"
    else:
        hint = f"names are like {example!r}" if example else f"use one of {', '.join(known)}"
    raise errors.ConfigError(f"there is no {what} {name!r}: {hint}")


def of_gymnasium_id(name: str, ids: str, known: Collection[str]) -> str:
    """Returns the known name behind a gymnasium id: "ALE/MsPacman-v5" is "ms_pacman".

    Args:
      name: An id, or any other name, which is returned unchanged.
      ids: Pattern of ids, whose first group is the known name without its underscores.
      known: Names with underscores between their words.
    """
    match = re.fullmatch(ids, name)
    joined = {known_name.replace("_", ""): known_name for known_name in known}
    return joined.get(match[1].lower(), name) if match else name

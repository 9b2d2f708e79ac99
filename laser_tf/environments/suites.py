"""All suites by name, and checks of names; importing this module loads no suite.

A suite outside this package is named by its path "module:Class", see docs/extending.md.
"""

import importlib
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from laser_tf import config_values, user_code

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
    "gymnasium_vector": "vector_suite:VectorConfig",
    "dm_env": "function_suites:DmEnvConfig",
    "tf_agents": "function_suites:TFAgentsConfig",
}
SUITES = tuple(_SUITES)
DEFAULT = "atari"


def config_class(suite: str) -> "type[environment_config.EnvironmentConfig]":
    """Returns the configuration class of a suite; raises ConfigError for an unknown suite."""
    if user_code.is_path(suite):
        from laser_tf.environments import environment_config  # It imports this module.

        base: Any = environment_config.EnvironmentConfig  # mypy: it is abstract.
        found = user_code.load_class("suite", suite, base)
        user_code.check_decorated("suite", suite, found, base)
        return found
    config_values.check_name("suite", suite, SUITES)
    module, name = _SUITES[suite].split(":")
    return getattr(importlib.import_module(f"laser_tf.environments.{module}"), name)


def of_gymnasium_id(name: str, ids: str, known: Collection[str]) -> str:
    """Returns the known name of a gymnasium id: "ALE/MsPacman-v5" is "ms_pacman".

    The first group of the pattern `ids` is a known name without underscores. A name of another form
    is returned unchanged.
    """
    match = re.fullmatch(ids, name)
    joined = {known_name.replace("_", ""): known_name for known_name in known}
    return joined.get(match[1].lower(), name) if match else name

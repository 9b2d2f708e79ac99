"""All suites by name; importing this file loads none of them.

A new suite is a line here and a file with its `EnvironmentConfig`, which makes its environments.
"""

import importlib
from typing import TYPE_CHECKING

from laser_tf.environments import names

if TYPE_CHECKING:
    from laser_tf.environments import environment_config

# Name -> where its configuration is, as "module:class" of this package.
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


def config_class(suite: str) -> "type[environment_config.EnvironmentConfig]":
    """The class of a suite's configuration.

    Raises:
      ValueError: for an unknown suite; the message names close ones.
    """
    names.check("suite", suite, SUITES)
    module, name = _SUITES[suite].split(":")
    return getattr(importlib.import_module(f"laser_tf.environments.{module}"), name)

"""Registry of all agents by name. Importing this module loads neither agents nor TensorFlow.

A new agent needs an entry here, a module with its `AgentConfig` and a module with its `base.Agent`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from laser_tf import errors

if TYPE_CHECKING:
    from laser_tf.agents import agent_config, base

# Kind -> configuration class and agent class, as "module:class" in this package.
_AGENTS = {
    "a3c": ("acer_config:A3CConfig", "a3c:A3C"),
    "acer": ("acer_config:AcerConfig", "acer:Acer"),
    "laser": ("laser_config:LaserConfig", "laser:Laser"),
    "r2d2": ("r2d2_config:R2D2Config", "r2d2:R2D2"),
    "reactor": ("reactor_config:ReactorConfig", "reactor:Reactor"),
}
DEFAULT = "laser"


def config_class(name: str) -> "type[agent_config.AgentConfig]":
    """Returns the configuration class of an agent; raises ValueError if the name is unknown."""
    if name not in tuple(_AGENTS):  # A tuple also accepts unhashable values.
        choices = ", ".join(map(repr, _AGENTS))
        raise errors.ConfigError(
            f"name must be one of {choices}, got {name!r}. Use e.g. {DEFAULT!r}."
        )
    return _load(_AGENTS[name][0])


def make(config: "agent_config.AgentConfig", context: "base.AgentContext") -> "base.Agent":
    """Creates an agent; raises ValueError if the configuration does not fit the environment."""
    return _load(_AGENTS[config.name][1])(config, context)


def _load(path: str) -> Any:
    module, name = path.split(":")
    return getattr(importlib.import_module(f"laser_tf.agents.{module}"), name)

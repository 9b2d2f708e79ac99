"""Registry of all agents by name. Importing this module loads neither agents nor TensorFlow.

A new agent needs an entry here, a module with its `AgentConfig` and a module with its `base.Agent`.
No other module names it. A user's agent is a class `module:Class`, see docs/extending.md.
"""

import importlib
from typing import TYPE_CHECKING, Any

from laser_tf import config_values, errors, user_code

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
    """Returns the configuration class of an agent; raises ConfigError if the name is unknown."""
    if user_code.is_path(name):
        return _load_custom(name).config_class
    if name == "impala":
        raise errors.ConfigError(
            "name must be an agent, got 'impala', a configuration of the agent laser. Use "
            "agent.name=laser with replay.scheme=online, or --config=impala."
        )
    config_values.check_name("name", name, tuple(_AGENTS))  # A tuple accepts unhashable values.
    return _load(_AGENTS[name][0])


def make(config: "agent_config.AgentConfig", context: "base.AgentContext") -> "base.Agent":
    """Creates an agent; raises ConfigError if the configuration does not fit the environment."""
    if user_code.is_path(config.name):
        agent_class: Any = _load_custom(config.name)
        # The signature of a class of `tf.Module` would be that of its metaclass.
        user_code.check_parameters(
            "agent.name", config.name, "__init__(self, config, context)",
            agent_class.__init__, None, config, context,
        )  # fmt: skip
        return agent_class(config, context)
    return _load(_AGENTS[config.name][1])(config, context)


def _load(path: str) -> Any:
    module, name = path.split(":")
    return getattr(importlib.import_module(f"laser_tf.agents.{module}"), name)


def _load_custom(path: str) -> "type[base.Agent]":
    from laser_tf.agents import agent_config, base  # `base` imports TensorFlow.

    agent_class = user_code.load_class("name", path, base.Agent)
    config = agent_class.config_class
    if not (isinstance(config, type) and issubclass(config, agent_config.AgentConfig)):
        raise errors.ConfigError(
            f"name must be an agent whose config_class derives from AgentConfig, got {path!r} with "
            f"{config!r}. See docs/extending.md."
        )
    user_code.check_decorated("name", path, config, agent_config.AgentConfig)
    return agent_class

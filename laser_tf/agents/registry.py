"""All agents by name; importing this file loads none of them, nor TensorFlow.

A new agent is a line here, a file with its `AgentConfig` and a file with its `base.Agent`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from laser_tf import errors

if TYPE_CHECKING:
    from laser_tf.agents import agent_config, base

# Kind -> where its configuration and the agent itself are, as "module:class" of this package.
_AGENTS = {
    "a3c": ("a3c_config:A3CConfig", "a3c:A3C"),
    "acer": ("acer_config:AcerConfig", "acer:Acer"),
    "laser": ("laser_config:LaserConfig", "laser:Laser"),
    "r2d2": ("r2d2_config:R2D2Config", "r2d2:R2D2"),
    "reactor": ("reactor_config:ReactorConfig", "reactor:Reactor"),
}
DEFAULT = "laser"


def config_class(kind: str) -> "type[agent_config.AgentConfig]":
    """The class of an agent's configuration.

    Raises:
      ValueError: for an unknown kind; the message names those there are.
    """
    if kind not in tuple(_AGENTS):  # it may be no text at all
        raise errors.ConfigError(f"kind is {kind!r}: choose one of {', '.join(map(repr, _AGENTS))}")
    return _load(_AGENTS[kind][0])


def make(config: "agent_config.AgentConfig", context: "base.Context") -> "base.Agent":
    """Makes the agent that a configuration describes, with fresh weights.

    Raises:
      ValueError: for an option that does not fit the environment.
    """
    return _load(_AGENTS[config.kind][1])(config, context)


def _load(place: str) -> Any:
    module, name = place.split(":")
    return getattr(importlib.import_module(f"laser_tf.agents.{module}"), name)

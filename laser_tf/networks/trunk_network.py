"""Base class of networks that consist of a trunk and heads."""

from typing import Any

import tensorflow as tf

from laser_tf import types
from laser_tf.networks import trunk, trunk_config


class TrunkNetwork(tf.Module):
    """Network with a trunk; subclasses add heads."""

    def __init__(self, config: trunk_config.TrunkConfig, spec: types.EnvironmentSpec, dtype: str):
        super().__init__()
        self._trunk = trunk.Trunk(config, spec, dtype)

    @property
    def moments(self) -> tuple[tf.Variable, ...]:
        """Returns the moments that normalise observations; acting reads them."""
        return self._trunk.moments

    def initial_state(self, batch_size: int | tf.Tensor) -> Any:
        """Returns the core state before an episode, [B, ...]; () without a core."""
        return self._trunk.initial_state(batch_size)

    def observe(self, env_output: types.EnvOutput) -> None:
        """Updates the moments of the encoder, see `trunk.observe`."""
        self._trunk.observe(env_output)

"""What networks on a trunk share: all that they are asked for beside their outputs."""

from typing import Any

import tensorflow as tf

from laser_tf import types
from laser_tf.networks import trunk, trunk_config


class TrunkNetwork(tf.Module):
    """A trunk; subclasses put their heads on it."""

    def __init__(self, config: trunk_config.TrunkConfig, spec: types.EnvironmentSpec, dtype: str):
        """Creates the trunk, see `trunk.Trunk`; its weights appear at the first call."""
        super().__init__()
        self._trunk = trunk.Trunk(config, spec, dtype)

    @property
    def moments(self) -> tuple[tf.Variable, ...]:
        """What acting reads beside the weights."""
        return self._trunk.moments

    def initial_state(self, batch_size: int | tf.Tensor) -> Any:
        """The core state before an episode."""
        return self._trunk.initial_state(batch_size)

    def observe(self, env_output: types.EnvOutput) -> None:
        """See `trunk.Trunk.observe`."""
        self._trunk.observe(env_output)

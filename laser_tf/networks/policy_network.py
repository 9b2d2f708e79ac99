"""Policy network: a trunk and a linear layer. An average policy copies this network."""

from typing import Any

import tensorflow as tf

from laser_tf import types
from laser_tf.networks import heads, trunk_config, trunk_network


class PolicyNetwork(trunk_network.TrunkNetwork):
    """Computes the inputs of an action distribution and the features that critics share.

    The last layer has P = `output_size` units, see `heads.dense` for `output_scale`.
    """

    def __init__(
        self,
        config: trunk_config.TrunkConfig,
        spec: types.EnvironmentSpec,
        dtype: str,
        *,
        output_size: int,
        output_scale: float,
    ):
        super().__init__(config, spec, dtype)
        self._head = heads.dense(output_size, output_scale)

    def __call__(
        self, env_output: types.EnvOutput, core_state: Any
    ) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """Computes float32 features [T, B, F], outputs [T, B, P] and the next core state."""
        features, core_state = self._trunk(env_output, core_state)
        features = tf.cast(features, tf.float32)
        return features, self._head(features), core_state

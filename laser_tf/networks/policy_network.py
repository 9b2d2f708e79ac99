"""The network of a policy: trunk and one linear layer, all that an average policy is a copy of."""

from typing import Any

import tensorflow as tf

from laser_tf import types
from laser_tf.networks import heads, trunk_config, trunk_network


class PolicyNetwork(trunk_network.TrunkNetwork):
    """What a distribution's parameters are made of, and the features that critics share."""

    def __init__(
        self,
        config: trunk_config.TrunkConfig,
        spec: types.EnvironmentSpec,
        dtype: str,
        *,
        output_size: int,
        output_scale: float,
    ):
        """Creates the network; its weights appear at the first call.

        Args:
          config: of the trunk.
          spec: of the environment, images as they are after stacking.
          dtype: compute dtype of the trunk's encoder, "float32" or "bfloat16".
          output_size: P.
          output_scale: of the last layer's first weights, see `heads.dense`.
        """
        super().__init__(config, spec, dtype)
        self._head = heads.dense(output_size, output_scale)

    def __call__(
        self, env_output: types.EnvOutput, core_state: Any
    ) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """Steps [R, B, ...] -> features [R, B, F], outputs [R, B, P] and the next core state.

        Features and outputs are float32.
        """
        features, core_state = self._trunk(env_output, core_state)
        features = tf.cast(features, tf.float32)
        return features, self._head(features), core_state

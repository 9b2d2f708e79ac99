"""The network of Q-values (R2D2, section 2.3): trunk and dueling head."""

from typing import Any

import tensorflow as tf

from laser_tf import types
from laser_tf.networks import heads, trunk_config, trunk_network


class QNetwork(trunk_network.TrunkNetwork):
    """The Q-values of time steps."""

    def __init__(
        self,
        config: trunk_config.TrunkConfig,
        spec: types.EnvironmentSpec,
        dtype: str,
        *,
        hidden_units: int,
        reset_at_life_loss: bool = False,
    ):
        """Creates the network; its weights appear at the first call.

        Args:
          config: of the trunk.
          spec: of the environment, images as they are after stacking; with discrete actions.
          dtype: compute dtype of the torso, "float32" or "bfloat16".
          hidden_units: of each of the head's streams.
          reset_at_life_loss: reset the core where the discount is 0, too (R2D2, figure 8).
        """
        super().__init__(config, spec, dtype)
        self._head = heads.DuelingHead(spec.action.num_values, hidden_units)
        self._resets_at_life_loss = reset_at_life_loss

    def __call__(self, env_output: types.EnvOutput, core_state: Any) -> tuple[tf.Tensor, Any]:
        """Steps [R, B, ...] -> Q-values float32 [R, B, A], and the state after the last step."""
        if self._resets_at_life_loss:
            # x_t ends a life and begins the next one: there is no step between them.
            lost = tf.equal(env_output.discount, 0.0)
            env_output = env_output._replace(is_first=env_output.is_first | lost)
        features, core_state = self._trunk(env_output, core_state)
        return self._head(features), core_state

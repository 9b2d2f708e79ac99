"""Q-network of a trunk and a dueling head (R2D2, section 2.3)."""

from typing import Any

import tensorflow as tf

from laser_tf import types
from laser_tf.networks import heads, trunk_config, trunk_network


class QNetwork(trunk_network.TrunkNetwork):
    """Computes Q-values of time steps.

    With `reset_at_life_loss` a discount of 0 also resets the core (R2D2, figure 8).
    """

    def __init__(
        self,
        config: trunk_config.TrunkConfig,
        spec: types.EnvironmentSpec,
        dtype: str,
        *,
        hidden_units: int,
        reset_at_life_loss: bool = False,
    ):
        super().__init__(config, spec, dtype)
        self._head = heads.DuelingHead(spec.action.num_values, hidden_units)
        self._reset_at_life_loss = reset_at_life_loss

    def __call__(self, env_output: types.EnvOutput, core_state: Any) -> tuple[tf.Tensor, Any]:
        """Computes Q-values, float32 [T, B, A], and the core state after the last step."""
        if self._reset_at_life_loss:
            # No step separates two lives: x_t is both the end of a life and the next one's start.
            life_lost = tf.equal(env_output.discount, 0.0)
            env_output = env_output._replace(is_first=env_output.is_first | life_lost)
        features, core_state = self._trunk(env_output, core_state)
        return self._head(features), core_state

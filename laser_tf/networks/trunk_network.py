"""Networks of a trunk and a head."""

from typing import Any

import tensorflow as tf

from laser_tf import observations, types
from laser_tf.networks import heads, trunk, trunk_config
from laser_tf.ops import action_mask


class TrunkNetwork(tf.Module):
    """Network with a trunk; subclasses add a head."""

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

    def update_normalisers(self, env_output: types.EnvOutput) -> None:
        """Updates the moments that normalise observations, see `trunk.EncoderNetwork`."""
        self._trunk.update_normalisers(env_output)


class PolicyNetwork(TrunkNetwork):
    """Computes the inputs of an action distribution and the features that critics share.

    An average policy copies this network. Its last layer has P = `output_size` units, see
    `heads.dense` for `output_scale`. Logits of forbidden actions are `action_mask.FORBIDDEN`.
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
        mask = observations.action_mask(env_output.observation)
        return features, action_mask.apply(self._head(features), mask), core_state


class QNetwork(TrunkNetwork):
    """Computes Q-values with a dueling head (R2D2, section 2.3).

    Q-values of forbidden actions are `action_mask.FORBIDDEN`.
    With `reset_at_life_loss` a discount of 0 also resets the core (R2D2, figure 8).
    """

    def __init__(
        self,
        config: trunk_config.TrunkConfig,
        spec: types.EnvironmentSpec,
        dtype: str,
        *,
        hidden_units: int,
        reset_at_life_loss: bool,
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
        mask = observations.action_mask(env_output.observation)
        return action_mask.apply(self._head(features), mask), core_state

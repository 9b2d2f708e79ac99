"""A Q-network of rows (R2D2, section 2.3): torso, core and dueling head."""

from typing import Any

import tensorflow as tf

from laser_tf import types
from laser_tf.networks import heads, trunk


class QNetwork(tf.Module):
    """The Q-values of rows of games."""

    def __init__(
        self,
        network_trunk: trunk.Trunk,
        num_actions: int,
        hidden_units: int,
        *,
        reset_at_life_loss: bool = False,
    ):
        """Creates the head on a trunk of its own.

        Args:
          network_trunk: torso and core.
          num_actions: A.
          hidden_units: of each of the head's streams.
          reset_at_life_loss: reset the core where the discount is 0, too (R2D2, figure 8).
        """
        super().__init__()
        self._trunk = network_trunk
        self._head = heads.DuelingHead(num_actions, hidden_units)
        self._resets_at_life_loss = reset_at_life_loss

    def create_weights(self, spec: types.EnvironmentSpec, frame_stack: int) -> None:
        """Creates all weights, which otherwise waits for the first call."""
        self(_blank_row(spec, frame_stack), self.initial_state(1))

    def initial_state(self, batch_size: int) -> Any:
        """The core state before an episode."""
        return self._trunk.initial_state(batch_size)

    def __call__(self, env_output: types.EnvOutput, core_state: Any) -> tuple[tf.Tensor, Any]:
        """Rows [R, B, ...] -> Q-values float32 [R, B, A], and the state after the last row."""
        if self._resets_at_life_loss:
            # x_t ends a life and begins the next one: there is no row between them.
            lost = tf.equal(env_output.discount, 0.0)
            env_output = env_output._replace(is_first=env_output.is_first | lost)
        features, core_state = self._trunk(env_output, core_state)
        return self._head(features), core_state


def _blank_row(spec: types.EnvironmentSpec, frame_stack: int) -> types.EnvOutput:
    height, width, channels = spec.frame_shape
    return types.EnvOutput(
        observation=tf.zeros([1, 1, height, width, channels * frame_stack], tf.uint8),
        reward=tf.zeros([1, 1]),
        discount=tf.ones([1, 1]),
        is_first=tf.ones([1, 1], tf.bool),
        previous_action=tf.zeros([1, 1], tf.int32),
        instruction=(
            tf.zeros([1, 1, spec.instruction_length], tf.int32) if spec.instruction_length else ()
        ),
    )

"""The trunk: torso and core, what all heads of an agent grow on."""

from typing import Any

import tensorflow as tf

from laser_tf import types
from laser_tf.networks import cores, language, torsos


class Trunk(tf.Module):
    """Folds time into the batch for the torso, unfolds it for the core."""

    def __init__(
        self,
        torso: str,
        core: str,
        *,
        spec: types.EnvironmentSpec,
        core_size: int,
        core_memory_span: int,
        channel_multiplier: int,
        center_observation: bool,
        dtype: str,
    ):
        """Creates the trunk.

        Args:
          torso: a key of `torsos.TORSOS`.
          core: a key of `cores.CORES`, or "none" for a feed-forward trunk.
          spec: of the environment. With a text channel, features begin with the encoded text.
          core_size: H, units of the core.
          core_memory_span: steps, see `lstm_cell.LSTMCell`.
          channel_multiplier: of the torso.
          center_observation: whether the torso subtracts each observation's mean.
          dtype: compute dtype of the torso, "float32" or "bfloat16".
        """
        super().__init__()
        self._num_actions = spec.num_actions
        self._torso = torsos.TORSOS[torso](channel_multiplier, center_observation, dtype)
        self._language = language.InstructionEncoder() if spec.instruction_length else None
        self._core = cores.CORES[core](core_size, core_memory_span) if core != "none" else None

    def initial_state(self, batch_size: int) -> Any:
        """The core state before an episode, [B, ...]; () without a core."""
        return self._core.initial_state(batch_size) if self._core else ()

    def __call__(self, env_output: types.EnvOutput, core_state: Any) -> tuple[tf.Tensor, Any]:
        """Features of an unroll.

        Args:
          env_output: [R, B, ...].
          core_state: before row 0, [B, ...].

        Returns:
          Features [R, B, F] and the core state after the last row.
        """
        rows, batch = env_output.observation.shape[:2]
        features = self._torso(_fold(env_output.observation))
        if self._language:
            encoded = self._language(_fold(env_output.instruction))
            features = tf.concat([tf.cast(encoded, features.dtype), features], axis=-1)
        features = tf.reshape(features, [rows, batch, -1])
        if self._core is None:
            return features, ()
        return self._core(
            features,
            tf.one_hot(env_output.previous_action, self._num_actions),
            tf.clip_by_value(env_output.reward, -1.0, 1.0),
            env_output.is_first,
            core_state,
        )


def _fold(tensor: tf.Tensor) -> tf.Tensor:
    """[R, B, ...] -> [R B, ...]."""
    rows, batch, *shape = tensor.shape
    return tf.reshape(tensor, [rows * batch, *shape])

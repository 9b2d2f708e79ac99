"""The trunk: encoder of observations and core, what all heads of an agent grow on."""

from typing import Any

import tensorflow as tf

from laser_tf import types
from laser_tf.networks import action_encoding, cores, observation_encoder, trunk_config


class Trunk(tf.Module):
    """Folds time into the batch for the encoder, unfolds it for the core."""

    def __init__(self, config: trunk_config.TrunkConfig, spec: types.EnvironmentSpec, dtype: str):
        """Creates the trunk.

        Args:
          config: what it is made of.
          spec: of the environment, images as they are after stacking.
          dtype: compute dtype of the encoder, "float32" or "bfloat16".
        """
        super().__init__()
        self._action = spec.action
        self._encoder = observation_encoder.ObservationEncoder(spec.observation, config, dtype)
        self._core = (
            cores.CORES[config.core](config.core_size, config.core_memory_span)
            if config.core != "none"
            else None
        )

    @property
    def moments(self) -> tuple[tf.Variable, ...]:
        """What acting reads beside the weights."""
        return self._encoder.moments

    def initial_state(self, batch_size: int | tf.Tensor) -> Any:
        """The core state before an episode, [B, ...]; () without a core."""
        return self._core.initial_state(batch_size) if self._core else ()

    def __call__(self, env_output: types.EnvOutput, core_state: Any) -> tuple[tf.Tensor, Any]:
        """Features of an unroll.

        Args:
          env_output: [R, B, ...]; B need not be static.
          core_state: before step 0, [B, ...].

        Returns:
          Features [R, B, F] and the core state after the last step.
        """
        features = encode(self._encoder, env_output)
        if self._core is None:
            return features, ()
        return self._core(
            features,
            action_encoding.encode(self._action, env_output.previous_action),
            tf.clip_by_value(env_output.reward, -1.0, 1.0),
            env_output.is_first,
            core_state,
        )

    def observe(self, env_output: types.EnvOutput) -> None:
        """See the function `observe`."""
        observe(self._encoder, env_output)


def encode(
    encoder: observation_encoder.ObservationEncoder, env_output: types.EnvOutput
) -> tf.Tensor:
    """Features [R, B, F] of an unroll's observations [R, B, ...]; B need not be static."""
    features = encoder(tf.nest.map_structure(_fold, env_output.observation))
    return tf.reshape(features, [env_output.reward.shape[0], -1, features.shape[-1]])


def observe(encoder: observation_encoder.ObservationEncoder, env_output: types.EnvOutput) -> None:
    """Moves the moments that observations are normalised by; [T + 1, B, ...].

    The last step is left out, being the next unroll's first, and so are the steps of blank
    unrolls: nothing else opens an episode and is followed by another first step.
    """
    is_first = env_output.is_first
    mask = tf.logical_not(is_first[:-1] & is_first[1:])
    encoder.observe(
        tf.nest.map_structure(lambda leaf: _fold(leaf[:-1]), env_output.observation),
        tf.reshape(mask, [-1]),
    )


def _fold(tensor: tf.Tensor) -> tf.Tensor:
    """[R, B, ...] -> [R B, ...]."""
    return tf.reshape(tensor, [-1, *tensor.shape[2:]])

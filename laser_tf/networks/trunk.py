"""Trunk of observation encoder and core, which all heads of an agent share."""

from typing import Any

import tensorflow as tf
from dm_env import specs

from laser_tf import types
from laser_tf.networks import cores, observation_encoder, trunk_config


class Trunk(tf.Module):
    """Applies the encoder to all time steps at once, then unrolls the core over time.

    `dtype` is the compute dtype of the encoder, "float32" or "bfloat16".
    """

    def __init__(self, config: trunk_config.TrunkConfig, spec: types.EnvironmentSpec, dtype: str):
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
        """Returns the moments that normalise observations; acting reads them."""
        return self._encoder.moments

    def initial_state(self, batch_size: int | tf.Tensor) -> Any:
        """Returns the core state before an episode, [B, ...]; () without a core."""
        return self._core.initial_state(batch_size) if self._core else ()

    def __call__(self, env_output: types.EnvOutput, core_state: Any) -> tuple[tf.Tensor, Any]:
        """Computes features [T, B, F] of an unroll [T, B, ...] and the next core state."""
        features = encode(self._encoder, env_output)
        if self._core is None:
            return features, ()
        return self._core(
            features,
            encode_action(self._action, env_output.previous_action),
            tf.clip_by_value(env_output.reward, -1.0, 1.0),
            env_output.is_first,
            core_state,
        )

    def observe(self, env_output: types.EnvOutput) -> None:
        """Updates the moments of the encoder, see the function `observe`."""
        observe(self._encoder, env_output)


def encode(
    encoder: observation_encoder.ObservationEncoder, env_output: types.EnvOutput
) -> tf.Tensor:
    """Encodes observations [T, B, ...] as features [T, B, F]; B need not be static."""
    features = encoder(tf.nest.map_structure(_merge_time_and_batch, env_output.observation))
    return tf.reshape(features, [env_output.reward.shape[0], -1, features.shape[-1]])


def observe(encoder: observation_encoder.ObservationEncoder, env_output: types.EnvOutput) -> None:
    """Updates the moments that normalise observations from an unroll [T + 1, B, ...].

    The last step is ignored because it is also the first step of the next unroll. The steps of
    blank unrolls are ignored, too: only in blank unrolls do two first steps follow each other.
    """
    is_first = env_output.is_first
    mask = tf.logical_not(is_first[:-1] & is_first[1:])
    encoder.observe(
        tf.nest.map_structure(
            lambda leaf: _merge_time_and_batch(leaf[:-1]), env_output.observation
        ),
        tf.reshape(mask, [-1]),
    )


def encode_action(spec: specs.BoundedArray, action: tf.Tensor) -> tf.Tensor:
    """Encodes discrete actions as one-hot vectors and scales continuous ones to [-1, 1].

    Args:
      spec: A `DiscreteArray` of A actions, or float32 [D] with finite bounds.
      action: int32 [...] or float32 [..., D].

    Returns:
      float32 [..., A] or [..., D].
    """
    if isinstance(spec, specs.DiscreteArray):
        return tf.one_hot(action, spec.num_values)
    low, high = spec.minimum, spec.maximum
    # Equal bounds leave a single action, which is encoded as 0.
    return tf.math.divide_no_nan(2 * action - (high + low), high - low)


def _merge_time_and_batch(tensor: tf.Tensor) -> tf.Tensor:
    """Reshapes [T, B, ...] to [T * B, ...]."""
    return tf.reshape(tensor, [-1, *tensor.shape[2:]])

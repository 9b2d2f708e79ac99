"""Trunk of observation encoder and core, which all heads of an agent share."""

from typing import Any

import numpy as np
import tensorflow as tf
from dm_env import specs

from laser_tf import types
from laser_tf.networks import cores, observation_encoder, trunk_config


class EncoderNetwork(tf.Module):
    """Network with an observation encoder, which it applies to all time steps at once.

    `dtype` is the compute dtype of the encoder, "float32" or "bfloat16".
    """

    def __init__(self, config: trunk_config.TrunkConfig, spec: types.EnvironmentSpec, dtype: str):
        super().__init__()
        self._encoder = observation_encoder.ObservationEncoder(spec.observation, config, dtype)

    @property
    def moments(self) -> tuple[tf.Variable, ...]:
        """Returns the moments that normalise observations; acting reads them."""
        return self._encoder.moments

    def update_normalisers(self, env_output: types.EnvOutput) -> None:
        """Updates the moments that normalise observations from an unroll [T + 1, B, ...].

        The last step is ignored because it is also the first step of the next unroll. The steps of
        blank unrolls are ignored, too: only in blank unrolls do two first steps follow each other.
        """
        is_first = env_output.is_first
        mask = tf.logical_not(is_first[:-1] & is_first[1:])
        self._encoder.update_normalisers(
            tf.nest.map_structure(
                lambda leaf: _merge_time_and_batch(leaf[:-1]), env_output.observation
            ),
            tf.reshape(mask, [-1]),
        )

    def _encode(self, env_output: types.EnvOutput) -> tf.Tensor:
        """Encodes observations [T, B, ...] as features [T, B, F]; B need not be static."""
        merged = tf.nest.map_structure(_merge_time_and_batch, env_output.observation)
        features = self._encoder(merged)
        return tf.reshape(features, [env_output.reward.shape[0], -1, features.shape[-1]])


class Trunk(EncoderNetwork):
    """Applies the encoder, then unrolls the core over time."""

    def __init__(self, config: trunk_config.TrunkConfig, spec: types.EnvironmentSpec, dtype: str):
        super().__init__(config, spec, dtype)
        self._action = spec.action
        self._core = cores.make(config)

    def initial_state(self, batch_size: int | tf.Tensor) -> Any:
        """Returns the core state before an episode, [B, ...]; () without a core."""
        return self._core.initial_state(batch_size) if self._core else ()

    def __call__(self, env_output: types.EnvOutput, core_state: Any) -> tuple[tf.Tensor, Any]:
        """Computes features [T, B, F] of an unroll [T, B, ...] and the next core state."""
        features = self._encode(env_output)
        if self._core is None:
            return features, ()
        return self._core(
            features,
            encode_action(self._action, env_output.previous_action),
            tf.clip_by_value(env_output.reward, -1.0, 1.0),
            env_output.is_first,
            core_state,
        )


def encode_action(spec: specs.BoundedArray, action: tf.Tensor) -> tf.Tensor:
    """Encodes discrete actions, int32 [...], as one-hot vectors, float32 [..., A].

    Continuous actions, float32 [..., D] with finite bounds, are scaled to [-1, 1]. The encoding of
    a `ProductSpec` has its integers first.
    """
    if isinstance(spec, types.ProductSpec):
        integers = tf.cast(tf.gather(action, spec.integers, axis=-1), tf.int32)
        encoded = observation_encoder.one_hot(spec.num_values, integers)
        if not spec.floats.size:
            return encoded
        floats = tf.gather(action, spec.floats, axis=-1)
        low, high = spec.minimum[spec.floats], spec.maximum[spec.floats]
        return tf.concat([encoded, _scale(floats, low, high)], axis=-1)
    if isinstance(spec, specs.DiscreteArray):
        return tf.one_hot(action, spec.num_values)
    return _scale(action, spec.minimum, spec.maximum)


def _scale(action: tf.Tensor, low: np.ndarray, high: np.ndarray) -> tf.Tensor:
    # Equal bounds leave a single action, which is encoded as 0.
    return tf.math.divide_no_nan(2 * action - (high + low), high - low)


def _merge_time_and_batch(tensor: tf.Tensor) -> tf.Tensor:
    """Reshapes [T, B, ...] to [T * B, ...]."""
    return tf.reshape(tensor, [-1, *tensor.shape[2:]])

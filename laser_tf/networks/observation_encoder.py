"""Encodes nested observations of images, vectors and texts as features."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree
from dm_env import specs

from laser_tf import errors, observations, types
from laser_tf.networks import lstm_cell, normalisers, torso_factory, torsos, trunk_config

EMBEDDING_SIZE, TEXT_UNITS = 20, 64


class ObservationEncoder(tf.Module):
    """Encodes images with a torso, texts with a text encoder and vectors with an MLP.

    Each image and each text has a separate encoder. One MLP encodes the concatenation of all
    vectors, scalars (vectors of size 1) and discrete values (one-hot vectors). The outputs of all
    encoders are concatenated. `fusion_units` adds a layer over the concatenation: without it, a
    linear head cannot represent interactions between the leaves of an observation. The action mask
    of an observation is not encoded.
    """

    def __init__(self, observation: Any, config: trunk_config.TrunkConfig, dtype: str):
        """Creates encoders for a nest of specs, whose images have stacked frames.

        Raises:
          ValueError: If a leaf has an unsupported shape, an image is too small for the torso, or
            the observation is empty.
        """
        super().__init__()
        observation = observations.without_action_mask(observation)
        center = config.image_normalisation == trunk_config.CENTER
        self._specs = tree.flatten(observation)
        self._encoders = []  # One entry per leaf: the image or text encoder, None for vectors.
        self._image_normalisers = []  # One entry per leaf: None if the leaf is not normalised.
        vector_size = 0
        if not any(map(observations.is_image, self._specs)):
            torso_factory.check_unused(config.torso)
        for path, spec in tree.flatten_with_path(observation):
            is_image = observations.is_image(spec)
            self._image_normalisers.append(
                normalisers.ImageNormaliser(spec.shape, tf.as_dtype(spec.dtype), dtype)
                if is_image and config.image_normalisation == trunk_config.RUNNING
                else None
            )
            if is_image:
                torso = torso_factory.make(
                    config.torso, config.channel_multiplier, center, dtype, spec
                )
                self._encoders.append(torso)
            elif isinstance(spec, types.TextSpec):
                self._encoders.append(InstructionEncoder())
            elif len(spec.shape) <= 1:
                self._encoders.append(None)
                vector_size += _vector_size(spec)
            else:
                name = "/".join(map(str, path)) or "the observation"
                raise errors.ConfigError(
                    f"{name} must be an image [H, W, C], a vector [D], a number or a text, got the "
                    f"shape {list(spec.shape)}. Reshape the observation in the environment."
                )
        if not self._encoders or not (vector_size or any(self._encoders)):
            raise errors.ConfigError(
                "the observation must contain at least one number, got an empty one. Add an "
                "observation to the environment."
            )
        self._mlp = (
            torsos.MLP(config.mlp_units, config.mlp_activation, dtype) if vector_size else None
        )
        num_parts = sum(encoder is not None for encoder in self._encoders) + bool(vector_size)
        self._fusion = (
            torsos.MLP([config.fusion_units], "relu", dtype)  # ReLU like the torsos' dense layers.
            if num_parts > 1 and config.fusion_units
            else None
        )
        self._normaliser = (
            normalisers.VectorNormaliser(vector_size)
            if vector_size and config.normalise_vectors
            else None
        )

    @property
    def moments(self) -> tuple[tf.Variable, ...]:
        """Returns the moments that normalise observations; acting reads them."""
        normalisers = [*self._image_normalisers, self._normaliser]
        return tuple(
            moment for normaliser in normalisers if normaliser for moment in normaliser.moments
        )

    def __call__(self, observation: Any) -> tf.Tensor:
        """Encodes a nest of [N, ...] as features [N, F]."""
        leaves = tree.flatten(observations.without_action_mask(observation))
        features = [
            encoder(normaliser(leaf) if normaliser else leaf)
            for encoder, normaliser, leaf in zip(
                self._encoders, self._image_normalisers, leaves, strict=True
            )
            if encoder is not None
        ]
        if self._mlp:
            vectors = self._concatenate_vectors(leaves)
            if self._normaliser:
                vectors = self._normaliser(vectors)
            features.append(self._mlp(vectors))
        if len(features) == 1:
            return features[0]
        concatenated = tf.concat([tf.cast(part, features[0].dtype) for part in features], axis=-1)
        return self._fusion(concatenated) if self._fusion else concatenated

    def update_normalisers(self, observation: Any, mask: tf.Tensor) -> None:
        """Updates the moments from the observations [N, ...] with a true `mask` [N]."""
        leaves = tree.flatten(observations.without_action_mask(observation))
        for normaliser, leaf in zip(self._image_normalisers, leaves, strict=True):
            if normaliser:
                normaliser.update_from_images(leaf, mask)
        if self._normaliser:
            self._normaliser.update(self._concatenate_vectors(leaves), mask)

    def _concatenate_vectors(self, leaves: list[tf.Tensor]) -> tf.Tensor:
        """Concatenates all numbers and vectors, float32 [N, D]."""
        parts = []
        for encoder, spec, leaf in zip(self._encoders, self._specs, leaves, strict=True):
            if encoder is not None:
                continue
            if isinstance(spec, specs.DiscreteArray):
                parts.append(tf.one_hot(leaf, spec.num_values))
            elif isinstance(spec, types.ProductSpec):
                parts.append(one_hot(spec.num_values, leaf))
            else:
                vector = tf.cast(leaf, tf.float32)
                parts.append(vector if spec.shape else vector[:, None])
        return tf.concat(parts, axis=-1)


class InstructionEncoder(tf.Module):
    """Encodes a text as the last output of an LSTM over word embeddings (IMPALA, figure 3)."""

    def __init__(self):
        super().__init__()
        self._embedding = tf.Variable(
            tf.keras.initializers.RandomNormal(stddev=1.0)([types.VOCABULARY_SIZE, EMBEDDING_SIZE]),
            name="embedding",
        )
        self._cell = lstm_cell.LSTMCell(TEXT_UNITS)

    def __call__(self, instruction: tf.Tensor) -> tf.Tensor:
        """Encodes word ids padded with 0, int32 [N, L], as float32 [N, 64]; zeros without words.

        L is static. The amount of padding does not change the encoding.
        """
        # The input projection is computed once per vocabulary entry instead of for all N * L words.
        gates = tf.gather(self._cell.project(self._embedding), tf.transpose(instruction))
        is_word = tf.transpose(instruction > 0)[..., None]
        zeros = tf.zeros([tf.shape(instruction)[0], TEXT_UNITS])
        state = lstm_cell.LSTMState(zeros, zeros)
        # The Python loop unrolls the graph, since L is static and small. Padding keeps the state.
        for position in range(instruction.shape[1]):
            next_state = self._cell.step(gates[position], state)
            state = lstm_cell.LSTMState(
                *(
                    tf.where(is_word[position], new, old)
                    for new, old in zip(next_state, state, strict=True)
                )
            )
        return state.output


def one_hot(num_values: Sequence[int], integers: tf.Tensor) -> tf.Tensor:
    """Concatenates the one-hot vectors of K integers, int32 [..., K], to float32 [..., P].

    `num_values` are the numbers of values of the integers, whose sum is P.
    """
    columns = tf.gather(integers, np.repeat(np.arange(len(num_values)), num_values), axis=-1)
    values = np.concatenate([np.arange(count, dtype=np.int32) for count in num_values])
    return tf.cast(columns == values, tf.float32)


def _vector_size(spec: specs.Array) -> int:
    if isinstance(spec, types.ProductSpec):
        return sum(spec.num_values)
    if isinstance(spec, specs.DiscreteArray):
        return spec.num_values
    return spec.shape[0] if spec.shape else 1

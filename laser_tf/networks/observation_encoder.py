"""From an observation of any structure to features: a part of the network for each kind of leaf."""

from typing import Any

import tensorflow as tf
import tree
from dm_env import specs

from laser_tf import errors, observations, types
from laser_tf.networks import (
    image_normaliser,
    language,
    torsos,
    trunk_config,
    vector_normaliser,
)


class ObservationEncoder(tf.Module):
    """Images go through the torso, texts through the text encoder, vectors through an MLP.

    All vectors (and numbers, which are vectors of one entry or, where they are discrete, one-hot)
    go through one MLP side by side. Each image and each text has a part of its own. The features
    are concatenated and, with `fusion_units`, go through one more layer: heads that are linear in
    each part cannot tell what one of them means by what another says.
    """

    def __init__(self, observation: Any, config: trunk_config.TrunkConfig, dtype: str):
        """Creates the parts.

        Args:
          observation: nest of specs, images as they are after stacking.
          config: of the trunk.
          dtype: compute dtype of the torsos and the MLP, "float32" or "bfloat16".

        Raises:
          ValueError: for a leaf that is none of these, or an image that is too small for the torso.
        """
        super().__init__()
        self._specs = tree.flatten(observation)
        self._encoders = []  # of images and texts, in the leaves' order; None for vectors
        self._image_normalisers = []  # in the leaves' order; None where there is none
        size = 0
        for path, spec in tree.flatten_with_path(observation):
            is_image = observations.is_image(spec)
            self._image_normalisers.append(
                image_normaliser.ImageNormaliser(spec.shape, tf.as_dtype(spec.dtype), dtype)
                if is_image and config.normalise_images
                else None
            )
            if is_image:
                trunk_config.check_image(config.torso, spec.shape)
                self._encoders.append(
                    torsos.TORSOS[config.torso](
                        config.channel_multiplier, config.center_observation, dtype
                    )
                )
            elif isinstance(spec, types.TextSpec):
                self._encoders.append(language.InstructionEncoder())
            elif len(spec.shape) <= 1:
                self._encoders.append(None)
                size += _vector_size(spec)
            else:
                name = "/".join(map(str, path)) or "the observation"
                raise errors.ConfigError(
                    f"{name} has the shape {list(spec.shape)}: an agent reads images [H, W, C], "
                    "vectors [D], numbers and texts; reshape it in the environment"
                )
        if not self._encoders or not (size or any(self._encoders)):
            raise errors.ConfigError("the observation is empty: an agent needs at least one number")
        self._mlp = torsos.MLP(config.mlp_units, config.mlp_activation, dtype) if size else None
        parts = sum(encoder is not None for encoder in self._encoders) + bool(size)
        self._fusion = (
            torsos.MLP([config.fusion_units], "relu", dtype)  # as torsos' dense layers
            if parts > 1 and config.fusion_units
            else None
        )
        self._normaliser = (
            vector_normaliser.VectorNormaliser(size) if size and config.normalise_vectors else None
        )

    @property
    def moments(self) -> tuple[tf.Variable, ...]:
        """What acting reads beside the weights."""
        normalisers = [*self._image_normalisers, self._normaliser]
        return tuple(moment for some in normalisers if some for moment in some.moments)

    def __call__(self, observation: Any) -> tf.Tensor:
        """Nest of [N, ...] -> features [N, F]."""
        leaves = tree.flatten(observation)
        features = [
            encoder(normaliser(leaf) if normaliser else leaf)
            for encoder, normaliser, leaf in zip(
                self._encoders, self._image_normalisers, leaves, strict=True
            )
            if encoder is not None
        ]
        if self._mlp:
            vectors = self._vectors(leaves)
            if self._normaliser:
                vectors = self._normaliser(vectors)
            features.append(self._mlp(vectors))
        if len(features) == 1:
            return features[0]
        joined = tf.concat([tf.cast(part, features[0].dtype) for part in features], axis=-1)
        return self._fusion(joined) if self._fusion else joined

    def observe(self, observation: Any, mask: tf.Tensor) -> None:
        """Moves the moments that images and vectors are normalised by.

        Args:
          observation: nest of [N, ...].
          mask: bool [N], which of them to read.
        """
        leaves = tree.flatten(observation)
        for normaliser, leaf in zip(self._image_normalisers, leaves, strict=True):
            if normaliser:
                normaliser.observe(leaf, mask)
        if self._normaliser:
            self._normaliser.update(self._vectors(leaves), mask)

    def _vectors(self, leaves: list[tf.Tensor]) -> tf.Tensor:
        """All numbers and vectors side by side, float32 [N, D]."""
        parts = []
        for encoder, spec, leaf in zip(self._encoders, self._specs, leaves, strict=True):
            if encoder is not None:
                continue
            if isinstance(spec, specs.DiscreteArray):
                parts.append(tf.one_hot(leaf, spec.num_values))
            else:
                vector = tf.cast(leaf, tf.float32)
                parts.append(vector if spec.shape else vector[:, None])
        return tf.concat(parts, axis=-1)


def _vector_size(spec: specs.Array) -> int:
    if isinstance(spec, specs.DiscreteArray):
        return spec.num_values
    return spec.shape[0] if spec.shape else 1

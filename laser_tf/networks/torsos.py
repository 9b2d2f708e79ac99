"""Torsos that map images [N, H, W, C] with stacked frames, or vectors, to features [N, F].

Initial weights have a truncated normal distribution of variance 2 / fan-in before a ReLU, which
preserves the scale of features (He et al. 2015). Before a tanh the variance is 1 / fan-in. `dtype`
is the compute dtype; the variables are float32.

`center` subtracts the mean of each observation, which the papers do not do. On a bright background
all inputs of a convolution are positive, so all of its weights move in the same direction. The
first RMSProp updates then leave most channels permanently inactive.
"""

import abc
import functools
from collections.abc import Callable, Sequence
from typing import TypeAlias

import tensorflow as tf

from laser_tf import kernels

Layer: TypeAlias = tf.keras.layers.Layer


def _initializer(scale: float = 2.0) -> tf.keras.initializers.Initializer:
    # Each layer needs a new object: Keras warns about a shared unseeded initializer, which would
    # return the same values again.
    return tf.keras.initializers.VarianceScaling(scale, "fan_in", "truncated_normal")


def compute_policy(dtype: str) -> tf.keras.mixed_precision.Policy:
    """Returns the Keras policy of a compute dtype, whose variables are float32."""
    return tf.keras.mixed_precision.Policy("mixed_bfloat16" if dtype == "bfloat16" else dtype)


def _conv(
    channels: int,
    size: int,
    stride: int,
    padding: str,
    dtype: str,
    initializer: tf.keras.initializers.Initializer | None = None,
) -> Layer:
    return tf.keras.layers.Conv2D(
        channels,
        size,
        stride,
        padding,
        kernel_initializer=initializer or _initializer(),
        dtype=compute_policy(dtype),
    )


def dense(units: int, dtype: str, scale: float = 2.0) -> Layer:
    """Creates a linear layer with initial weights of variance `scale` / fan-in."""
    return tf.keras.layers.Dense(
        units, kernel_initializer=_initializer(scale), dtype=compute_policy(dtype)
    )


class Torso(tf.Module, abc.ABC):
    """Scales uint8 images by 1 / 255 and applies `_features` of a subclass and a dense layer.

    Images of other dtypes are not scaled. With `center`, the mean of each image is subtracted.
    Without `units` there is no dense layer. A torso is created from `channel_multiplier`, `center`
    and `dtype`, which are keyword arguments for torsos outside this package.
    """

    def __init__(
        self,
        units: int,
        center: bool,
        dtype: str,
        activation: Callable[[tf.Tensor], tf.Tensor] = tf.nn.relu,
    ):
        super().__init__()
        self._dense = dense(units, dtype) if units else None
        self._activation = activation
        self._center = center
        self._dtype = dtype

    def __call__(self, observation: tf.Tensor) -> tf.Tensor:
        """Maps images [N, H, W, C] to features [N, F] of the compute dtype."""
        if self._center or observation.dtype == tf.uint8:
            observation = _scaled_images(observation, self._center, self._dtype)
        features = self._features(tf.cast(observation, self._dtype))
        features = tf.reshape(features, [-1, features.shape[1:].num_elements()])
        return self._activation(self._dense(features)) if self._dense else features

    @abc.abstractmethod
    def _features(self, scaled: tf.Tensor) -> tf.Tensor:
        """Maps scaled images [N, H, W, C] of the compute dtype to features [N, ...]."""


@kernels.fused
def _scaled_images(images: tf.Tensor, center: bool, dtype: str) -> tf.Tensor:
    scaled = tf.cast(images, tf.float32)
    if images.dtype == tf.uint8:
        scaled *= 1 / 255
    if center:
        scaled -= tf.reduce_mean(scaled, axis=[1, 2, 3], keepdims=True)
    return tf.cast(scaled, dtype)


class ConvolutionalTorso(Torso):
    """Convolutions and a dense layer, each followed by the activation.

    `convolutions` are channels, size and stride of each layer. They multiply their outputs by
    `weight_scale`, and initial weights are divided by it. The initial features stay the same, but
    an update changes them more (equalised learning rate, Karras et al. 2018, section 4.1).
    """

    def __init__(
        self,
        channel_multiplier: int,
        center: bool,
        dtype: str,
        *,
        convolutions: Sequence[tuple[int, int, int]],
        units: int,
        activation: Callable[[tf.Tensor], tf.Tensor] = tf.nn.relu,
        weight_scale: float = 1.0,
    ):
        # Without convolutions the multiplier scales the dense layer.
        units *= 1 if convolutions else channel_multiplier
        super().__init__(units, center, dtype, activation)
        self._weight_scale = weight_scale
        self._convolutions = [
            _conv(
                channels * channel_multiplier,
                size,
                stride,
                "valid",
                dtype,
                _initializer(2.0 / weight_scale**2),
            )
            for channels, size, stride in convolutions
        ]

    def _features(self, scaled: tf.Tensor) -> tf.Tensor:
        for convolution in self._convolutions:
            scaled = self._activation(self._weight_scale * convolution(scaled))
        return scaled


class _ResidualBlock(tf.Module):
    """Residual block, x + conv(relu(conv(relu(x)))).

    The last weights are initialised to zero, so that a fresh block is the identity (Goyal et al.
    2017, "Accurate, Large Minibatch SGD"). Otherwise six blocks would multiply the scale of the
    features by 8.
    """

    def __init__(self, channels: int, dtype: str):
        super().__init__()
        self._convolutions = [
            _conv(channels, 3, 1, "same", dtype, initializer)
            for initializer in (_initializer(), tf.keras.initializers.Zeros())
        ]

    def __call__(self, inputs: tf.Tensor) -> tf.Tensor:
        outputs = inputs
        for convolution in self._convolutions:
            outputs = convolution(tf.nn.relu(outputs))
        return inputs + outputs


class DeepTorso(Torso):
    """IMPALA's deep network (figure 3, right): 15 convolutional layers, dense 256.

    Each of three sections consists of a conv 3x3, a max-pool 3x3/2 and two residual blocks. The
    sections have 16, 32 and 32 channels. LASER multiplies the channels by 4 on Atari (section 5.1).
    """

    def __init__(self, channel_multiplier: int, center: bool, dtype: str, first_stride: int = 1):
        super().__init__(256, center, dtype)
        self._sections = []
        # The max of nine values has 2.6 times the mean square of a single value. The layer after
        # each max-pool compensates this factor.
        for channels, stride, scale in (
            (16, first_stride, 1.0),
            (32, 1, 1 / 2.6),
            (32, 1, 1 / 2.6),
        ):
            channels *= channel_multiplier
            blocks = [_ResidualBlock(channels, dtype) for _ in range(2)]
            convolution = _conv(channels, 3, stride, "same", dtype, _initializer(scale))
            self._sections.append((convolution, blocks))

    def _features(self, scaled: tf.Tensor) -> tf.Tensor:
        for convolution, blocks in self._sections:
            scaled = tf.nn.max_pool2d(convolution(scaled), ksize=3, strides=2, padding="SAME")
            for block in blocks:
                scaled = block(scaled)
        return tf.nn.relu(scaled)


# Each activation with the variance, times fan-in, of the initial weights before it.
ACTIVATIONS: dict[str, tuple[Callable[[tf.Tensor], tf.Tensor], float]] = {
    "tanh": (tf.tanh, 1.0),
    "relu": (tf.nn.relu, 2.0),
}


class MLP(tf.Module):
    """Dense layers for vectors.

    tanh bounds the features of rarely visited states (Andrychowicz et al. 2021, "What Matters for
    On-Policy Deep Actor-Critic Methods?", compare both activations). ReLU features grow with the
    distance from common states. While the critic learns the scale of the returns, its values of
    rare states then overshoot. With negative rewards the agent learns to avoid unexplored states.
    """

    def __init__(self, units: Sequence[int], activation: str, dtype: str):
        """Creates one layer per entry of `units`; `activation` is a key of `ACTIVATIONS`."""
        super().__init__()
        self._activation, scale = ACTIVATIONS[activation]
        self._layers = [dense(size, dtype, scale) for size in units]

    def __call__(self, vectors: tf.Tensor) -> tf.Tensor:
        """Maps vectors, float32 [N, D], to features [N, units[-1]] of the compute dtype."""
        for layer in self._layers:
            vectors = self._activation(layer(vectors))
        return vectors


_DQN = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
_REACTOR = ((16, 8, 4), (32, 4, 2), (32, 3, 1))
_SHALLOW = ((16, 8, 4), (32, 4, 2))
TORSOS: dict[str, Callable[[int, bool, str], Torso]] = {
    # IMPALA, figure 3, left.
    "shallow": functools.partial(ConvolutionalTorso, convolutions=_SHALLOW, units=256),
    # With the scale of 3, the initial weights of all layers have equal deviations. RMSProp and Adam
    # change all weights equally, so the convolutions of `shallow` learn slowly.
    "shallow_equalised": functools.partial(
        ConvolutionalTorso, convolutions=_SHALLOW, units=256, weight_scale=3.0
    ),
    "deep": DeepTorso,
    # A quarter of the computation. MuZero's representation network also starts with a stride of 2
    # (Schrittwieser et al. 2020, "Network Architecture").
    "strided_deep": functools.partial(DeepTorso, first_stride=2),
    # Mnih et al. 2015. R2D2's core reads the convolutions directly. The hidden layers of the
    # dueling head replace DQN's dense layer (Wang et al. 2016), see `heads.DuelingHead`.
    "dqn": functools.partial(ConvolutionalTorso, convolutions=_DQN, units=0),
    # As in ACER, section 4.
    "nature": functools.partial(ConvolutionalTorso, convolutions=_DQN, units=512),
    # Gruslys et al. 2018, table 3, for single frames. A concatenated ReLU returns both relu(x) and
    # relu(-x), which doubles the channels.
    "reactor": functools.partial(
        ConvolutionalTorso, convolutions=_REACTOR, units=128, activation=tf.nn.crelu
    ),
    # Young and Tian 2019, "MinAtar", for 10x10 observations.
    "minatar": functools.partial(ConvolutionalTorso, convolutions=((16, 3, 1),), units=128),
    "flat": functools.partial(ConvolutionalTorso, convolutions=(), units=64),  # For catch.
}

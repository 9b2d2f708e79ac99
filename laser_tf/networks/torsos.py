"""Torsos: from images [N, H, W, C] with stacked frames, or vectors, to features [N, F].

Weights are drawn from a truncated normal of variance 2 / fan-in (He et al. 2015), which keeps the
scale of features through ReLUs, or of 1 / fan-in before a tanh. `dtype` is the compute dtype; the
variables are float32. `center` subtracts each observation's mean, which the papers do not: on a
bright background all inputs of a convolution are positive, its weights then move up or down
together, and RMSProp's first updates leave most channels below zero everywhere, for good.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import tensorflow as tf

Layer: TypeAlias = tf.keras.layers.Layer


def _initializer(scale: float = 2.0) -> tf.keras.initializers.Initializer:
    # A fresh object a layer: a shared unseeded initializer would warn and repeat itself.
    return tf.keras.initializers.VarianceScaling(scale, "fan_in", "truncated_normal")


def _policy(dtype: str) -> tf.keras.mixed_precision.Policy:
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
        dtype=_policy(dtype),
    )


def _dense(units: int, dtype: str, scale: float = 2.0) -> Layer:
    return tf.keras.layers.Dense(
        units, kernel_initializer=_initializer(scale), dtype=_policy(dtype)
    )


def _rectified(convolutions: Sequence[Layer], inputs: tf.Tensor) -> tf.Tensor:
    """Convolutions one after another, each with ReLU."""
    for convolution in convolutions:
        inputs = tf.nn.relu(convolution(inputs))
    return inputs


class _Torso(tf.Module):
    """Scales bytes by 1 / 255, applies `_features` and flattens what they are.

    Images of another dtype are taken as they are.
    """

    def __init__(self, center: bool, dtype: str):
        super().__init__()
        self._center = center
        self._dtype = dtype

    def __call__(self, observation: tf.Tensor) -> tf.Tensor:
        """[N, H, W, C] -> compute dtype [N, F]."""
        scaled = tf.cast(observation, self._dtype)
        if observation.dtype == tf.uint8:
            scaled *= tf.cast(1 / 255, self._dtype)
        if self._center:
            scaled -= tf.reduce_mean(scaled, axis=[1, 2, 3], keepdims=True)
        features = self._features(scaled)
        return tf.reshape(features, [-1, features.shape[1:].num_elements()])

    def _features(self, scaled: tf.Tensor) -> tf.Tensor:
        raise NotImplementedError


class _DenseTorso(_Torso):
    """With one dense layer and ReLU at the end."""

    def __init__(self, units: int, center: bool, dtype: str):
        super().__init__(center, dtype)
        self._dense = _dense(units, dtype)

    def __call__(self, observation: tf.Tensor) -> tf.Tensor:
        """[N, H, W, C] -> compute dtype [N, units]."""
        return tf.nn.relu(self._dense(super().__call__(observation)))


def _dqn_convolutions(channel_multiplier: int, dtype: str) -> list[Layer]:
    return [
        _conv(32 * channel_multiplier, 8, 4, "valid", dtype),
        _conv(64 * channel_multiplier, 4, 2, "valid", dtype),
        _conv(64 * channel_multiplier, 3, 1, "valid", dtype),
    ]


class DQNTorso(_Torso):
    """DQN's (Mnih et al. 2015): conv 32 8x8/4, conv 64 4x4/2, conv 64 3x3/1, no dense layer.

    R2D2's core follows the convolutions directly. DQN's dense layer of 512 has become the hidden
    layers of a dueling head (Wang et al. 2016), see `heads.DuelingHead`.
    """

    def __init__(self, channel_multiplier: int, center: bool, dtype: str):
        super().__init__(center, dtype)
        self._convolutions = _dqn_convolutions(channel_multiplier, dtype)

    def _features(self, scaled: tf.Tensor) -> tf.Tensor:
        return _rectified(self._convolutions, scaled)


class NatureTorso(_DenseTorso):
    """DQN's with its dense layer of 512: what ACER (section 4) reads images with."""

    def __init__(self, channel_multiplier: int, center: bool, dtype: str):
        super().__init__(512, center, dtype)
        self._convolutions = _dqn_convolutions(channel_multiplier, dtype)

    def _features(self, scaled: tf.Tensor) -> tf.Tensor:
        return _rectified(self._convolutions, scaled)


class ShallowTorso(_DenseTorso):
    """IMPALA's shallow network (figure 3, left): conv 16 8x8/4, conv 32 4x4/2, dense 256."""

    def __init__(self, channel_multiplier: int, center: bool, dtype: str):
        super().__init__(256, center, dtype)
        self._convolutions = [
            _conv(16 * channel_multiplier, 8, 4, "valid", dtype),
            _conv(32 * channel_multiplier, 4, 2, "valid", dtype),
        ]

    def _features(self, scaled: tf.Tensor) -> tf.Tensor:
        return _rectified(self._convolutions, scaled)


class ReactorTorso(_Torso):
    """Reactor's (Gruslys et al. 2018, table 3), for single frames: its cores remember earlier ones.

    Conv 16 8x8/4, conv 32 4x4/2, conv 32 3x3/1, dense 128. Each is followed by a concatenated ReLU,
    relu(x) and relu(-x) side by side, which doubles its channels.
    """

    def __init__(self, channel_multiplier: int, center: bool, dtype: str):
        super().__init__(center, dtype)
        self._convolutions = [
            _conv(16 * channel_multiplier, 8, 4, "valid", dtype),
            _conv(32 * channel_multiplier, 4, 2, "valid", dtype),
            _conv(32 * channel_multiplier, 3, 1, "valid", dtype),
        ]
        self._dense = _dense(128, dtype)

    def __call__(self, observation: tf.Tensor) -> tf.Tensor:
        """[N, H, W, C] -> compute dtype [N, 256]."""
        return tf.nn.crelu(self._dense(super().__call__(observation)))

    def _features(self, scaled: tf.Tensor) -> tf.Tensor:
        for convolution in self._convolutions:
            scaled = tf.nn.crelu(convolution(scaled))
        return scaled


class _ResidualBlock(tf.Module):
    """x + conv(relu(conv(relu(x)))), which begins as x: six blocks would multiply its scale by 8.

    The last weights begin at zero, as in "Accurate, Large Minibatch SGD" (Goyal et al. 2017).
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


class DeepTorso(_DenseTorso):
    """IMPALA's deep network (figure 3, right): 15 convolutional layers, dense 256.

    Three sections of 16, 32 and 32 channels: conv 3x3, max-pool 3x3/2 and two residual blocks.
    LASER multiplies the channels by 4 on Atari (section 5.1).
    """

    _STRIDE = 1  # of the first convolution

    def __init__(self, channel_multiplier: int, center: bool, dtype: str):
        super().__init__(256, center, dtype)
        self._sections = []
        # The largest of nine has 2.6 times the mean square of one, which the next layer takes back.
        for channels, stride, scale in (
            (16, self._STRIDE, 1.0),
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


class StridedDeepTorso(DeepTorso):
    """IMPALA's deep network whose first convolution has a stride of 2: a quarter of the computing.

    As MuZero's representation network begins (Schrittwieser et al. 2020, "Network Architecture").
    """

    _STRIDE = 2


class MinAtarTorso(_DenseTorso):
    """For 10x10 observations (Young and Tian 2019, "MinAtar"): conv 16 3x3, dense 128."""

    def __init__(self, channel_multiplier: int, center: bool, dtype: str):
        super().__init__(128, center, dtype)
        self._convolution = _conv(16 * channel_multiplier, 3, 1, "valid", dtype)

    def _features(self, scaled: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(self._convolution(scaled))


class FlatTorso(_DenseTorso):
    """One dense layer of 64 units over the flattened observation, for catch."""

    def __init__(self, channel_multiplier: int, center: bool, dtype: str):
        super().__init__(64 * channel_multiplier, center, dtype)

    def _features(self, scaled: tf.Tensor) -> tf.Tensor:
        return scaled


# With the variance, times fan-in, of the weights before it.
ACTIVATIONS: dict[str, tuple[Callable[[tf.Tensor], tf.Tensor], float]] = {
    "tanh": (tf.tanh, 1.0),
    "relu": (tf.nn.relu, 2.0),
}


class MLP(tf.Module):
    """Dense layers for vectors.

    With tanh (Andrychowicz et al. 2021, "What Matters for On-Policy Deep Actor-Critic Methods?",
    compared them) what is rarely seen has features of the same size as the rest. ReLU's grow with
    the distance from it: while values go to a scale of their own, those of rare states overshoot,
    and where rewards are negative the agent comes to avoid what it has not tried.
    """

    def __init__(self, units: Sequence[int], activation: str, dtype: str):
        """Creates a layer for each number of `units`; `activation` is a key of `ACTIVATIONS`."""
        super().__init__()
        self._activation, scale = ACTIVATIONS[activation]
        self._layers = [_dense(size, dtype, scale) for size in units]

    def __call__(self, vectors: tf.Tensor) -> tf.Tensor:
        """float32 [N, D] -> [N, units of the last layer]."""
        for layer in self._layers:
            vectors = self._activation(layer(vectors))
        return vectors


TORSOS: dict[str, Callable[[int, bool, str], _Torso]] = {
    "shallow": ShallowTorso,
    "deep": DeepTorso,
    "strided_deep": StridedDeepTorso,
    "dqn": DQNTorso,
    "nature": NatureTorso,
    "reactor": ReactorTorso,
    "minatar": MinAtarTorso,
    "flat": FlatTorso,
}

"""PixelControl's head: from features to the action values of each cell of a grid."""

import tensorflow as tf

KERNEL, STRIDE = 4, 2
MAP_CHANNELS = 32


def _dense(units: int, policy: tf.keras.mixed_precision.Policy) -> tf.keras.layers.Layer:
    initializer = tf.keras.initializers.VarianceScaling(2.0, "fan_in", "truncated_normal")
    return tf.keras.layers.Dense(units, kernel_initializer=initializer, dtype=policy)


def _deconvolution(channels: int, policy: tf.keras.mixed_precision.Policy) -> tf.keras.layers.Layer:
    # By hand: Keras takes the channels that come out of a deconvolution for its fan-in.
    fan_in = (KERNEL // STRIDE) ** 2 * MAP_CHANNELS
    initializer = tf.keras.initializers.TruncatedNormal(stddev=fan_in**-0.5)
    return tf.keras.layers.Conv2DTranspose(
        channels, KERNEL, STRIDE, "valid", kernel_initializer=initializer, dtype=policy
    )


def _map_size(cells: int) -> int:
    """The smallest map that a 4x4/2 deconvolution makes at least `cells` of."""
    return max(0, -(-(cells - KERNEL) // STRIDE)) + 1


class PixelControlHead(tf.Module):
    """Dense to a map of 32 channels, ReLU, deconvolutions 4x4/2 to a dueling pair (as in UNREAL).

    The paper prints a map of 7x7 for its grid of 20x20, but a 4x4/2 deconvolution makes 16x16 of
    that; the map is therefore as large as the grid asks for: 9x9 for 20x20, 8x11 for 18x24, 2x2 for
    5x5. Grids of odd size lose the last row or column of the deconvolution. The values are linear,
    without the rectifier that some reimplementations put behind the deconvolutions.
    """

    def __init__(self, num_actions: int, grid: tuple[int, int], dtype: str = "float32"):
        """Creates the head; its weights appear at the first call.

        Args:
          num_actions: A.
          grid: H', W', that of `ops.pixel_control.pixel_rewards`.
          dtype: compute dtype, "float32" or "bfloat16"; the variables are float32.
        """
        super().__init__()
        self._grid = grid
        self._map = [_map_size(cells) for cells in grid]
        policy = tf.keras.mixed_precision.Policy("mixed_bfloat16" if dtype == "bfloat16" else dtype)
        self._dense = _dense(self._map[0] * self._map[1] * MAP_CHANNELS, policy)
        self._value = _deconvolution(1, policy)
        self._advantage = _deconvolution(num_actions, policy)

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        """Features [N, F] -> q float32 [N, H', W', A].

        q(x, a) = V(x) + A(x, a) - mean_b A(x, b)   (Wang et al. 2016, "Dueling", equation 9)
        """
        flat = tf.nn.relu(self._dense(features))
        spatial = tf.reshape(flat, [-1, *self._map, MAP_CHANNELS])
        value = self._on_grid(self._value(spatial))
        advantage = self._on_grid(self._advantage(spatial))
        return value + advantage - tf.reduce_mean(advantage, axis=-1, keepdims=True)

    def _on_grid(self, outputs: tf.Tensor) -> tf.Tensor:
        return tf.cast(outputs[:, : self._grid[0], : self._grid[1]], tf.float32)

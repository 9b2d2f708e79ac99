"""PixelControl head: computes Q-values for each cell of a grid."""

import tensorflow as tf

from laser_tf.networks import torsos

KERNEL, STRIDE = 4, 2
MAP_CHANNELS = 32


def _deconvolution(channels: int, dtype: str) -> torsos.Layer:
    # Keras' VarianceScaling uses the output channels of a deconvolution as its fan-in.
    fan_in = (KERNEL // STRIDE) ** 2 * MAP_CHANNELS
    initializer = tf.keras.initializers.TruncatedNormal(stddev=fan_in**-0.5)
    return tf.keras.layers.Conv2DTranspose(
        channels,
        KERNEL,
        STRIDE,
        "valid",
        kernel_initializer=initializer,
        dtype=torsos.compute_policy(dtype),
    )


def _map_size(cells: int) -> int:
    """Returns the min input size for which a 4x4/2 deconvolution outputs at least `cells`."""
    return max(0, -(-(cells - KERNEL) // STRIDE)) + 1


class PixelControlHead(tf.Module):
    """Dueling Q-values from a spatial map and two deconvolutions (UNREAL).

    A dense ReLU layer outputs a map of 32 channels. Two linear 4x4/2 deconvolutions turn the map
    into state values and advantages. The paper prints a 7x7 map for its 20x20 grid, but a 4x4/2
    deconvolution of 7x7 outputs 16x16. The map size therefore follows from the grid: 9x9 for 20x20.
    For grids of odd size the last row or column of the deconvolution is dropped.
    """

    def __init__(self, num_actions: int, grid: tuple[int, int], dtype: str):
        """Creates a head for the grid (H', W') of `ops.pixel_control.pixel_rewards`.

        `dtype` is the compute dtype, "float32" or "bfloat16"; the variables are float32.
        """
        super().__init__()
        self._grid = grid
        self._map = [_map_size(cells) for cells in grid]
        self._dense = torsos.dense(self._map[0] * self._map[1] * MAP_CHANNELS, dtype)
        self._value = _deconvolution(1, dtype)
        self._advantage = _deconvolution(num_actions, dtype)

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        """Computes Q-values, float32 [N, H', W', A], from features [N, F].

        q(x, a) = V(x) + A(x, a) - mean_b A(x, b)   (Wang et al. 2016, "Dueling", equation 9)
        """
        flat = tf.nn.relu(self._dense(features))
        spatial = tf.reshape(flat, [-1, *self._map, MAP_CHANNELS])
        value = self._crop_to_grid(self._value(spatial))
        advantage = self._crop_to_grid(self._advantage(spatial))
        return value + advantage - tf.reduce_mean(advantage, axis=-1, keepdims=True)

    def _crop_to_grid(self, outputs: tf.Tensor) -> tf.Tensor:
        return tf.cast(outputs[:, : self._grid[0], : self._grid[1]], tf.float32)

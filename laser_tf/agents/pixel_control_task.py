"""PixelControl as an auxiliary task of any actor-critic agent (UNREAL, Jaderberg et al. 2017)."""

import tensorflow as tf

from laser_tf import types
from laser_tf.networks import pixel_control_head
from laser_tf.ops import pixel_control


class PixelControlTask(tf.Module):
    """Learns, from an agent's features, to change each cell of the frames."""

    def __init__(self, spec: types.EnvironmentSpec, cell: int, dtype: str):
        """Creates the task; its weights appear at the first call of `loss`.

        Args:
          spec: of the environment.
          cell: height and width of a cell, pixels.
          dtype: compute dtype of the head, "float32" or "bfloat16".

        Raises:
          ValueError: if a cell is larger than the frames.
        """
        super().__init__()
        height, width, self._frame_channels = spec.frame_shape
        if min(height, width) < cell:
            raise ValueError(
                f"pixel_control_cell is {cell} pixels, frames are {height}x{width}: use a smaller "
                "one"
            )
        self._cell = cell
        grid = (height // cell, width // cell)
        self._head = pixel_control_head.PixelControlHead(spec.num_actions, grid, dtype)

    def loss(
        self,
        observation: tf.Tensor,
        features: tf.Tensor,
        actions: tf.Tensor,
        is_transition: tf.Tensor,
        trusted: tf.Tensor,
        weight: tf.Tensor,
    ) -> tf.Tensor:
        """The n-step Q-learning loss, summed over time, batch and cells.

        Args:
          observation: uint8 [T + 1, B, H, W, C], stacks of which the newest frame is read.
          features: [T + 1, B, F].
          actions: int32 [T, B].
          is_transition: bool [T, B].
          trusted: bool [T, B], the trust region's mask.
          weight: float32 [B], importance weights.

        Returns:
          float32 [].
        """
        rows, batch, size = features.shape
        q = self._head(tf.reshape(features, [rows * batch, size]))
        q = tf.reshape(q, [rows, batch, *q.shape[1:]])
        rewards = pixel_control.pixel_rewards(observation[..., -self._frame_channels :], self._cell)
        # Errors grow with q and the rewards, and the loss with their squares.
        root_weight = tf.sqrt(weight)[:, None, None]
        return pixel_control.pixel_control_loss(
            root_weight[..., None] * q, actions, root_weight * rewards, is_transition, trusted
        )

"""PixelControl as an auxiliary task of any actor-critic agent (UNREAL, Jaderberg et al. 2017)."""

import numpy as np
import tensorflow as tf
import tree
from dm_env import specs

from laser_tf import errors, observations, types
from laser_tf.networks import pixel_control_head
from laser_tf.ops import pixel_control


class PixelControlTask(tf.Module):
    """Learns, from an agent's features, to change each cell of the frames."""

    def __init__(
        self,
        spec: types.EnvironmentSpec,
        *,
        frame_stack: int,
        cost: float,
        cell: int,
        dtype: str,
    ):
        """Creates the task; its weights appear at the first call.

        Args:
          spec: of the environment, images as they are after stacking.
          frame_stack: K, frames in an image.
          cost: what the agent's loss multiplies this loss by.
          cell: height and width of a cell, pixels.
          dtype: compute dtype of the head, "float32" or "bfloat16".

        Raises:
          ValueError: if there is not one image of bytes, actions are continuous or a cell is larger
            than the image.
        """
        super().__init__()
        self.cost = cost
        leaves = tree.flatten(spec.observation)
        images = [
            index
            for index, leaf in enumerate(leaves)
            if observations.is_image(leaf) and leaf.dtype == np.uint8
        ]
        if len(images) != 1 or not isinstance(spec.action, specs.DiscreteArray):
            raise errors.ConfigError(
                f"pixel_control_cost is {cost}: PixelControl needs one uint8 image and discrete "
                f"actions, the environment has {observations.describe(spec)}; use 0"
            )
        self._image = images[0]
        height, width, channels = leaves[self._image].shape
        if min(height, width) < cell:
            raise errors.ConfigError(
                f"pixel_control_cell is {cell} pixels, frames are {height}x{width}: use a smaller "
                "one"
            )
        self._frame_channels = channels // frame_stack
        self._cell = cell
        grid = (height // cell, width // cell)
        self._head = pixel_control_head.PixelControlHead(spec.action.num_values, grid, dtype)

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        """Features [R, B, F] -> action values float32 [R, B, H', W', A] of each cell."""
        q = self._head(tf.reshape(features, [-1, features.shape[-1]]))
        return tf.reshape(q, [features.shape[0], -1, *q.shape[1:]])

    def loss(
        self,
        unroll: types.Unroll,
        features: tf.Tensor,
        is_transition: tf.Tensor,
        trusted: tf.Tensor,
    ) -> tf.Tensor:
        """The n-step Q-learning loss, summed over time, batch and cells.

        Args:
          unroll: [T + 1, B, ...].
          features: [T + 1, B, F].
          is_transition: bool [T, B].
          trusted: bool [T, B], the trust region's mask.

        Returns:
          float32 [].
        """
        image = tree.flatten(unroll.env_output.observation)[self._image]
        rewards = pixel_control.pixel_rewards(image[..., -self._frame_channels :], self._cell)
        # Errors grow with q and the rewards, and the loss with their squares.
        root_weight = tf.sqrt(unroll.importance_weight)[:, None, None]
        return pixel_control.pixel_control_loss(
            root_weight[..., None] * self(features),
            unroll.agent_output.action[:-1],
            root_weight * rewards,
            is_transition,
            trusted,
        )

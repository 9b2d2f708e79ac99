"""PixelControl as an auxiliary task of actor-critic agents (UNREAL, Jaderberg et al. 2017)."""

import numpy as np
import tensorflow as tf
import tree
from dm_env import specs

from laser_tf import errors, observations, types
from laser_tf.networks import pixel_control_head
from laser_tf.ops import action_mask, pixel_control


class PixelControlTask(tf.Module):
    """Learns Q-values of changing the pixels in each cell of a frame, from an agent's features."""

    def __init__(
        self, spec: types.EnvironmentSpec, *, frame_stack: int, cost: float, cell: int, dtype: str
    ):
        """Raises ConfigError without one uint8 image of at least a cell and one discrete action."""
        super().__init__()
        leaves = tree.flatten(spec.observation)
        images = [
            index
            for index, leaf in enumerate(leaves)
            if observations.is_image(leaf) and leaf.dtype == np.uint8
        ]
        if len(images) != 1 or not isinstance(spec.action, specs.DiscreteArray):
            raise errors.ConfigError(
                "agent.pixel_control_cost must be 0 unless the environment has one uint8 image and "
                f"one discrete action, got {cost} with {observations.describe(spec)}. Use "
                "--config.agent.pixel_control_cost=0."
            )
        self._image = images[0]
        height, width, channels = leaves[self._image].shape
        if min(height, width) < cell:
            raise errors.ConfigError(
                f"agent.pixel_control_cell must fit into frames of {height}x{width} pixels, got "
                f"{cell}. Use a smaller cell."
            )
        self._frame_channels = channels // frame_stack
        self._cell = cell
        grid = (height // cell, width // cell)
        self._head = pixel_control_head.PixelControlHead(spec.action.num_values, grid, dtype)

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        """Computes Q-values of each cell, float32 [T, B, H', W', A], from features [T, B, F]."""
        q = self._head(tf.reshape(features, [-1, features.shape[-1]]))
        return tf.reshape(q, [features.shape[0], -1, *q.shape[1:]])

    def loss(
        self,
        unroll: types.Unroll,
        features: tf.Tensor,
        is_transition: tf.Tensor,
        trusted: tf.Tensor,
    ) -> tf.Tensor:
        """Computes the n-step Q-learning loss, float32 [], summed over time, batch and cells.

        Features are [T + 1, B, F]. `is_transition` is false between two episodes and `trusted`
        outside of the trust region, bool [T, B].
        """
        image = tree.flatten(unroll.env_output.observation)[self._image]
        rewards = pixel_control.pixel_rewards(image[..., -self._frame_channels :], self._cell)
        q = self(features)
        mask = observations.action_mask(unroll.env_output.observation)
        if mask is not None:  # Targets bootstrap from the best allowed action.
            q = action_mask.apply(q, mask[:, :, None, None])
        # Scaling Q-values and rewards by the root of the weight scales the squared errors by it.
        root_weight = tf.sqrt(unroll.importance_weight)[:, None, None]
        return pixel_control.pixel_control_loss(
            root_weight[..., None] * q,
            unroll.agent_output.action[:-1],
            root_weight * rewards,
            is_transition,
            trusted,
        )

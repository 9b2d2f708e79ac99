"""PixelControl, an auxiliary task that shapes features (Jaderberg et al. 2017, "UNREAL").

A grid divides the image into cells. Each cell has separate action values, and its reward is the
change of its pixels. The action values do not select actions.
"""

import tensorflow as tf


def pixel_rewards(observations: tf.Tensor, cell: int) -> tf.Tensor:
    """Returns the mean absolute change of intensity in each cell (UNREAL, section 3.1).

    Height and width are cropped equally on both sides to multiples of `cell`. An odd pixel is
    cropped at the bottom or on the right. The change across a reset is computed as well, but
    `pixel_control_loss` does not read it.

    Args:
      observations: Single frames, uint8 [T + 1, B, H, W, C]. For stacked frames, pass the newest.
      cell: Height and width of a cell in pixels, at most H and W.

    Returns:
      Rewards in [0, 1], float32 [T, B, H // cell, W // cell].
    """
    height, width = (size // cell for size in observations.shape[2:4])
    top, left = (observations.shape[2] % cell) // 2, (observations.shape[3] % cell) // 2
    cropped = observations[:, :, top : top + height * cell, left : left + width * cell]
    # Convert before subtracting, because differences of uint8 wrap around.
    scaled = tf.cast(cropped, tf.float32) * (1 / 255)
    changes = tf.abs(scaled[1:] - scaled[:-1])
    cells = [*changes.shape[:2], height, cell, width, cell, changes.shape[-1]]
    return tf.reduce_mean(tf.reshape(changes, cells), axis=[3, 5, 6])


def pixel_control_loss(
    q: tf.Tensor,
    actions: tf.Tensor,
    rewards: tf.Tensor,
    is_transition: tf.Tensor,
    mask: tf.Tensor,
    discount: float = 0.9,
) -> tf.Tensor:
    """Returns the n-step Q-learning loss 1/2 sum (G_t - q(x_t, a_t))^2, float32 [].

    The targets are those of Q(lambda) with lambda = 1, bootstrapped at the last step of the unroll:

        G_t = r_t + gamma G_{t+1},   G_T = max_a q(x_T, a)

    If x_t ends an episode and x_{t+1} starts the next, then G_t = 0 and the previous target is
    G_{t-1} = r_{t-1}. Time limits do not bootstrap either, because no loss trains q at the last
    step of an episode. A lost life does not reset the return, because pixels keep changing.

    A false `mask` removes the error of a step, but targets of earlier steps still include its
    reward. Targets have no off-policy correction (UNREAL, section 3).

    The loss is a SUM over time, batch and cells, as in trfl. Its cost must therefore be tuned to
    the size of the grid.

    Args:
      q: Action values of each cell, float32 [T + 1, B, H', W', A]. The values of the actions taken
        receive the gradient.
      actions: Actions taken, int32 [T, B].
      rewards: Rewards from `pixel_rewards`, float32 [T, B, H', W']; receive no gradient.
      is_transition: Mask, bool [T, B], false if x_{t+1} starts an episode. Rewards and q of step t
        are not read there.
      mask: Mask of the trust region, bool [T, B]. Steps where it is false contribute neither loss
        nor gradient.
      discount: Discount gamma of the pixel rewards.
    """
    has_loss = tf.logical_and(is_transition, mask)
    targets = _returns(tf.reduce_max(q[-1], axis=-1), rewards, is_transition, discount)

    # A masked sum instead of a gather, whose gradient would be a scatter.
    taken = tf.one_hot(actions, q.shape[-1], True, False, dtype=tf.bool)[:, :, None, None, :]
    taken = tf.logical_and(taken, has_loss[:, :, None, None, None])
    values = tf.reduce_sum(tf.where(taken, q[:-1], 0.0), axis=-1)
    targets = tf.where(has_loss[:, :, None, None], tf.stop_gradient(targets), 0.0)
    return 0.5 * tf.reduce_sum(tf.square(targets - values))


def _returns(
    bootstrap: tf.Tensor, rewards: tf.Tensor, is_transition: tf.Tensor, discount: float
) -> tf.Tensor:
    """Returns G_t of `pixel_control_loss`, [T, B, H', W'], from a bootstrap [B, H', W']."""
    returns, reversed_returns = bootstrap, []
    # A Python loop, because T is static and small and XLA fuses the T steps.
    for t in reversed(range(rewards.shape[0])):
        continues = is_transition[t][:, None, None]
        returns = tf.where(continues, rewards[t] + discount * returns, 0.0)
        reversed_returns.append(returns)
    return tf.stack(reversed_returns[::-1])

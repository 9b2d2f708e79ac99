"""PixelControl: learning to change what is on the screen (Jaderberg et al. 2017, "UNREAL").

An auxiliary task that shapes the features and never acts: each cell of a grid over the observation
has action values of its own, and its reward is how much the cell's pixels change.
"""

import tensorflow as tf


def pixel_rewards(observations: tf.Tensor, cell: int) -> tf.Tensor:
    """The mean absolute change of intensity of each cell, in [0, 1] (UNREAL, section 3.1).

    Height and width are cropped to multiples of `cell`; what is cut off is the same at both sides,
    an odd pixel more at the bottom and the right. A change across a reset is computed like any
    other: `pixel_control_loss` does not read it.

    Args:
      observations: uint8 [T + 1, B, H, W, C], single frames: of stacked frames, pass the newest.
      cell: height and width of a cell in pixels, at most H and W.

    Returns:
      float32 [T, B, H // cell, W // cell].
    """
    height, width = (size // cell for size in observations.shape[2:4])
    top, left = (observations.shape[2] % cell) // 2, (observations.shape[3] % cell) // 2
    cropped = observations[:, :, top : top + height * cell, left : left + width * cell]
    # Scaled before they are subtracted: a difference of bytes wraps around.
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
    """1/2 sum (G_t - q(x_t, a_t))^2 over time, batch AND cells: n-step Q-learning.

    The targets are Q(lambda)'s at lambda 1, each bootstrapped at the unroll's last row:

        G_t = r_t + gamma G_{t+1},   G_T = max_a q(x_T, a)

    At a reset, i.e. where x_t ends an episode and x_{t+1} opens the next, G_t = 0: nothing of the
    next episode is read, and the target of the step before, G_{t-1} = r_{t-1}, has no bootstrap.
    That holds for time limits as well, since nothing ever trains q at an episode's last row. A lost
    life is no reset: pixels go on.

    A false `mask` drops a step's own error only; the targets of earlier steps still run through
    its reward, as a sum of what was seen, not corrected for being off-policy (UNREAL, section 3).

    A sum, as everywhere in this project; over cells too, as in DeepMind's trfl, so that a cost in
    front of it belongs to a size of the grid.

    Args:
      q: float32 [T + 1, B, H', W', A], of each cell; receives the gradient at the actions taken.
      actions: int32 [T, B].
      rewards: float32 [T, B, H', W'], from `pixel_rewards`; no gradient flows into them.
      is_transition: bool [T, B], false where x_{t+1} opens an episode: rewards and q of such a step
        are never read.
      mask: bool [T, B], the trust region: false entries contribute neither loss nor gradient.
      discount: gamma of the pixel rewards.

    Returns:
      float32 [].
    """
    is_transition = tf.cast(is_transition, tf.bool)
    learns = tf.logical_and(is_transition, tf.cast(mask, tf.bool))
    targets = _returns(tf.reduce_max(q[-1], axis=-1), rewards, is_transition, discount)

    # A sum with one entry rather than a gather: its gradient is no scatter.
    taken = tf.one_hot(actions, q.shape[-1], True, False, dtype=tf.bool)[:, :, None, None, :]
    taken = tf.logical_and(taken, learns[:, :, None, None, None])
    values = tf.reduce_sum(tf.where(taken, q[:-1], 0.0), axis=-1)
    targets = tf.where(learns[:, :, None, None], tf.stop_gradient(targets), 0.0)
    return 0.5 * tf.reduce_sum(tf.square(targets - values))


def _returns(
    bootstrap: tf.Tensor, rewards: tf.Tensor, is_transition: tf.Tensor, discount: float
) -> tf.Tensor:
    """G_t of `pixel_control_loss`: [B, H', W'], [T, B, H', W'], [T, B] -> [T, B, H', W']."""
    returns, reversed_returns = bootstrap, []
    # Unrolled: T is static and small, and XLA fuses the T steps.
    for t in reversed(range(rewards.shape[0])):
        goes_on = is_transition[t][:, None, None]
        returns = tf.where(goes_on, rewards[t] + discount * returns, 0.0)
        reversed_returns.append(returns)
    return tf.stack(reversed_returns[::-1])

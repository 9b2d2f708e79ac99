"""Distributional Retrace on a categorical critic (Gruslys et al. 2018, "The Reactor", section 3.2).

For each action the critic outputs probability masses q_i on a fixed grid of returns z_1 .. z_N, the
support. See `laser_tf.types` for the time indices of `[T, B]` arguments.
"""

import tensorflow as tf


def distributional_retrace(
    rewards: tf.Tensor,
    discounts: tf.Tensor,
    q_taken: tf.Tensor,
    values: tf.Tensor,
    traces: tf.Tensor,
    is_transition: tf.Tensor,
    support: tf.Tensor,
) -> tf.Tensor:
    """Returns the target masses q*(x_t, a_t).

        q*_i(x_t, a_t) = sum_{n>=1} sum_a alpha_{n,a} sum_j q_j(x_{t+n}, a) h_i(z^n_j)
        z^n_j          = sum_{s<n} gamma^s r_{t+s} + gamma^n z_j
        alpha_{n,a}    = c_{t+1} .. c_{t+n-1} (pi(a|x_{t+n}) - 1{a = a_{t+n}} c_{t+n})

    The trace c of the last n is 0, so that the alphas sum to 1. The paper prints
    q_j(x_{t+n}, a_{t+n}) in place of q_j(x_{t+n}, a).

    The sum equals the recursion of Retrace, applied to measures of returns:

        Z_t = tau_t(V_{t+1} + c_{t+1} (Z_{t+1} - q_{t+1})),    Z_T = q_T
        tau_t moves the mass at z to r_t + gamma_t z

    As in the paper, all masses are moved first and then projected onto the support once. Projecting
    at each step would smear them. Inside the support, sum_i z_i q*_i equals scalar Retrace. Target
    masses may be negative, but their expectation under the behaviour policy is not.

    Args:
      rewards: Rewards r_t received with x_{t+1}, float32 [T, B].
      discounts: Discounts gamma_t, float32 [T, B]: gamma times the discount received with x_{t+1}.
      q_taken: Masses q(x_t, a_t) of the target network, float32 [T, B, N]; step 0 is not read.
      values: Masses sum_a pi(a|x_t) q(x_t, a) of the target network, float32 [T + 1, B, N]. They
        must be finite even where the discount is 0; step 0 is not read.
      traces: Traces c_t = lambda min(1, pi(a_t|x_t) / mu(a_t|x_t)), float32 [T, B]; step 0 is not
        read.
      is_transition: Mask, bool [T, B], false if x_{t+1} starts an episode. Other arguments at step
        t, and the value of x_{t+1}, are not read there.
      support: Grid z_i of returns, float32 [N], equally spaced and increasing, N >= 2.

    Returns:
      Target masses without gradient, float32 [T, B, N]. They sum to 1 for each transition and are
      0 where `is_transition` is false.
    """
    rewards, discounts, traces = (
        tf.where(is_transition, x, tf.zeros_like(x)) for x in (rewards, discounts, traces)
    )
    q_taken, next_values = (
        tf.where(is_transition[..., None], x, tf.zeros_like(x)) for x in (q_taken, values[1:])
    )
    next_traces, next_q = (
        tf.concat([x[1:], tf.zeros_like(x[:1])], axis=0) for x in (traces, q_taken)
    )
    # Masses that x_{k+1} adds to the targets of earlier steps, at index k.
    parts = next_values - next_traces[..., None] * next_q
    shifts, scales, weights = _affine_maps(rewards, discounts, next_traces)
    atoms = shifts[..., None] + scales[..., None] * support
    targets = project(_merge_parts(atoms), _merge_parts(weights[..., None] * parts), support)
    targets = tf.where(is_transition[..., None], targets, tf.zeros_like(targets))
    return tf.stop_gradient(targets)


def _affine_maps(
    rewards: tf.Tensor, discounts: tf.Tensor, next_traces: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns shifts, scales and weights of part k in target t, float32 [T, T, B] each.

    Index [t, k] maps a return z from x_{k+1} to the return shift + scale z from x_t. Its weight is
    c_{t+1} .. c_k, and 0 for k < t.
    """
    T, empty = rewards.shape[0], tf.zeros_like(rewards[:0])
    shifts, scales, weights = empty, empty, empty
    maps = []
    # A Python loop, because T is static and small and XLA fuses the T steps.
    for t in reversed(range(T)):
        ones = tf.ones_like(rewards[:1])
        shifts = rewards[t] + discounts[t] * tf.concat([0.0 * ones, shifts], axis=0)
        scales = discounts[t] * tf.concat([ones, scales], axis=0)
        weights = tf.concat([ones, next_traces[t] * weights], axis=0)
        maps.append([tf.pad(x, [[t, 0], [0, 0]]) for x in (shifts, scales, weights)])
    return tuple(tf.stack(x[::-1]) for x in zip(*maps, strict=True))


def _merge_parts(x: tf.Tensor) -> tf.Tensor:
    """Merges the axes of parts and atoms: [T, T, B, N] -> [T, B, T * N]."""
    T, _, B, N = x.shape
    return tf.reshape(tf.transpose(x, [0, 2, 1, 3]), [T, -1 if B is None else B, T * N])


def project(atoms: tf.Tensor, masses: tf.Tensor, support: tf.Tensor) -> tf.Tensor:
    """Projects masses onto the support, float32 [..., N] (C51, equation 7).

        h_i(x) = max(0, 1 - |x - z_i| / (z_2 - z_1)), with x clipped to the support

    Each mass is split between its two neighbours, which preserves the mean inside the support.

    Args:
      atoms: Locations of the masses, float32 [..., M].
      masses: Masses of any sign, float32 [..., M].
      support: Points z_i, float32 [N], equally spaced and increasing, N >= 2.
    """
    N = support.shape[0]
    gap = (support[-1] - support[0]) / (N - 1)
    positions = (tf.clip_by_value(atoms, support[0], support[-1]) - support[0]) / gap
    below = tf.clip_by_value(tf.floor(positions), 0.0, N - 2.0)
    share_above = positions - below
    leading = tf.shape(atoms)[:-1]
    rows = tf.reduce_prod(leading)
    first = tf.reshape(tf.range(rows) * N, tf.concat([leading, [1]], axis=0))
    segments = first + tf.cast(below, tf.int32)
    flat = tf.math.unsorted_segment_sum(masses * (1.0 - share_above), segments, rows * N)
    flat += tf.math.unsorted_segment_sum(masses * share_above, segments + 1, rows * N)
    return tf.reshape(flat, tf.concat([leading, [N]], axis=0))


def cross_entropy(logits: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Returns the critic loss - sum_i q*_i log q_i(x_t, a_t), float32 [...] (equation 12).

    Only the logits of q, [..., N], receive a gradient. The targets q*, [..., N], have any sign.
    """
    return -tf.reduce_sum(tf.stop_gradient(targets) * tf.nn.log_softmax(logits), axis=-1)


def total_variation(logits: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Returns sum_i |q*_i - q_i(x_t, a_t)|, float32 [...], without gradient.

    The priority of a sequence is the mean over its steps (section 3.3). Logits and targets are
    float32 [..., N].
    """
    return tf.stop_gradient(tf.reduce_sum(tf.abs(targets - tf.nn.softmax(logits)), axis=-1))

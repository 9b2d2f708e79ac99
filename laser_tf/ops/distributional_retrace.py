"""Distributional Retrace on a categorical critic (Gruslys et al. 2018, "The Reactor", section 3.2).

A critic gives each action masses q_i on a fixed grid of returns z_1 .. z_N, the support. All
arguments follow `laser_tf.types`: index t of a `[T, B]` argument belongs to the transition from x_t
to x_{t+1}, so rewards and discounts are rows 1..T of an unroll.
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
    """The target masses q*(x_t, a_t).

        q*_i(x_t, a_t) = sum_{n>=1} sum_a alpha_{n,a} sum_j q_j(x_{t+n}, a) h_i(z^n_j)
        z^n_j          = sum_{s<n} gamma^s r_{t+s} + gamma^n z_j
        alpha_{n,a}    = c_{t+1} .. c_{t+n-1} (pi(a|x_{t+n}) - 1{a = a_{t+n}} c_{t+n})

    with c = 0 for the last n, so that the alphas sum to 1 (the paper prints q_j(x_{t+n}, a_{t+n})
    for q_j(x_{t+n}, a)). This is Retrace's recursion, on measures of returns:

        Z_t = tau_t(V_{t+1} + c_{t+1} (Z_{t+1} - q_{t+1})),    Z_T = q_T
        tau_t moves the mass at z to r_t + gamma_t z

    Masses are moved first, and projected onto the support once, as the paper does: a projection
    with every step would smear them. Inside the support sum_i z_i q*_i equals scalar Retrace.
    Masses of a target may be negative; those of its mean over the behaviour policy are not.

    Args:
      rewards: float32 [T, B], that arrived with x_{t+1}.
      discounts: float32 [T, B], gamma times the discount that arrived with x_{t+1}.
      q_taken: float32 [T, B, N], q(x_t, a_t) of the target network; row 0 is never read.
      values: float32 [T + 1, B, N], sum_a pi(a|x_t) q(x_t, a) of the target network, finite also
        where a discount of 0 hides them; row 0 is never read.
      traces: float32 [T, B], c_t = lambda min(1, pi(a_t|x_t) / mu(a_t|x_t)); row 0 is never read.
      is_transition: bool [T, B], false where x_{t+1} opens an episode: what the other arguments
        hold of that step, and the value of x_{t+1}, are never read.
      support: float32 [N], equally spaced and rising, N >= 2.

    Returns:
      float32 [T, B, N]; the masses of a transition sum to 1. Where `is_transition` is false they
      are 0. No gradient flows into them.
    """
    rewards, discounts, traces = (
        tf.where(is_transition, x, tf.zeros_like(x)) for x in (rewards, discounts, traces)
    )
    q_taken, following = (
        tf.where(is_transition[..., None], x, tf.zeros_like(x)) for x in (q_taken, values[1:])
    )
    next_traces, next_q = (
        tf.concat([x[1:], tf.zeros_like(x[:1])], axis=0) for x in (traces, q_taken)
    )
    # Of x_{k+1}, in row k: what its own values add to the target, and is not left to later steps.
    parts = following - next_traces[..., None] * next_q
    shifts, scales, weights = _moves(rewards, discounts, next_traces)
    atoms = shifts[..., None] + scales[..., None] * support
    targets = project(
        _rows_of_targets(atoms), _rows_of_targets(weights[..., None] * parts), support
    )
    targets = tf.where(is_transition[..., None], targets, tf.zeros_like(targets))
    return tf.stop_gradient(targets)


def _moves(
    rewards: tf.Tensor, discounts: tf.Tensor, next_traces: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """How target t moves and weights the part of x_{k+1}: float32 [T, T, B], of t and k, each.

    A return z from x_{k+1} on is a return shift + scale z from x_t on. The weight is
    c_{t+1} .. c_k, 0 for k < t.
    """
    T, none = rewards.shape[0], tf.zeros_like(rewards[:0])
    shifts, scales, weights = none, none, none
    rows = []
    # Unrolled: T is static and small, and XLA fuses the T steps.
    for t in reversed(range(T)):
        own = tf.ones_like(rewards[:1])
        shifts = rewards[t] + discounts[t] * tf.concat([0.0 * own, shifts], axis=0)
        scales = discounts[t] * tf.concat([own, scales], axis=0)
        weights = tf.concat([own, next_traces[t] * weights], axis=0)
        rows.append([tf.pad(x, [[t, 0], [0, 0]]) for x in (shifts, scales, weights)])
    return tuple(tf.stack(moves[::-1]) for moves in zip(*rows, strict=True))


def _rows_of_targets(x: tf.Tensor) -> tf.Tensor:
    """[T, T, B, N], of target t and part k -> [T, B, T N]."""
    T, _, B, N = x.shape
    return tf.reshape(tf.transpose(x, [0, 2, 1, 3]), [T, -1 if B is None else B, T * N])


def project(atoms: tf.Tensor, masses: tf.Tensor, support: tf.Tensor) -> tf.Tensor:
    """Splits each mass between the two points of the support beside it (C51, equation 7).

        h_i(x) = max(0, 1 - |x - z_i| / (z_2 - z_1)), x clipped to the support first

    Inside the support the mean stays as it is.

    Args:
      atoms: float32 [..., M], where masses lie.
      masses: float32 [..., M], of any sign.
      support: float32 [N], equally spaced and rising, N >= 2.

    Returns:
      float32 [..., N].
    """
    N = support.shape[0]
    gap = (support[-1] - support[0]) / (N - 1)
    places = (tf.clip_by_value(atoms, support[0], support[-1]) - support[0]) / gap
    below = tf.clip_by_value(tf.floor(places), 0.0, N - 2.0)
    share_above = places - below
    leading = tf.shape(atoms)[:-1]
    rows = tf.reduce_prod(leading)
    first = tf.reshape(tf.range(rows) * N, tf.concat([leading, [1]], axis=0))
    segments = first + tf.cast(below, tf.int32)
    flat = tf.math.unsorted_segment_sum(masses * (1.0 - share_above), segments, rows * N)
    flat += tf.math.unsorted_segment_sum(masses * share_above, segments + 1, rows * N)
    return tf.reshape(flat, tf.concat([leading, [N]], axis=0))


def cross_entropy(logits: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """- sum_i q*_i log q_i(x_t, a_t) (equation 12).

    Args:
      logits: float32 [..., N], of q; receive the gradient.
      targets: float32 [..., N], q*, of any sign.

    Returns:
      float32 [...].
    """
    return -tf.reduce_sum(tf.stop_gradient(targets) * tf.nn.log_softmax(logits), axis=-1)


def total_variation(logits: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """sum_i |q*_i - q_i(x_t, a_t)|, what a sequence's priority is the mean of (section 3.3).

    Args:
      logits: float32 [..., N], of q.
      targets: float32 [..., N], q*, of any sign.

    Returns:
      float32 [...]; no gradient flows into it.
    """
    return tf.stop_gradient(tf.reduce_sum(tf.abs(targets - tf.nn.softmax(logits)), axis=-1))

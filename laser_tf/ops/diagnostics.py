"""What metrics and priorities are made of, never losses: no gradient is taken of it."""

import math

import tensorflow as tf

from laser_tf.ops import joint_batch


def off_policy(
    entropy: tf.Tensor,
    kl: tf.Tensor,
    log_rhos: tf.Tensor,
    advantages: tf.Tensor,
    *,
    is_transition: tf.Tensor,
    trusted: tf.Tensor,
    is_online: tf.Tensor,
    is_own: tf.Tensor,
    rho_bar: float,
) -> dict[str, joint_batch.Mean]:
    """How far pi is from mu, and what V-trace and the trust region make of it.

    Args:
      entropy: of pi, float32 [T, B].
      kl: KL(pi || mu), float32 [T, B].
      log_rhos: log pi(a|x) - log mu(a|x), float32 [T, B].
      advantages: of the actions that were taken, float32 [T, B]; read where trusted.
      is_transition: bool [T, B], false for the step between two episodes.
      trusted: bool [T, B], the transitions that the loss reads.
      is_online: bool [B].
      is_own: bool [B], false for what another agent of a sweep lived through.
      rho_bar: where V-trace clips.

    Returns:
      Name of a metric -> its mean.
    """
    replayed = is_transition & ~is_online
    clipped = tf.cast(log_rhos > math.log(rho_bar), tf.float32)
    accepted = tf.cast(trusted, tf.float32)
    own, foreign = replayed & is_own, replayed & ~is_own
    return {
        **divergences(entropy, kl, is_transition=is_transition, is_online=is_online, is_own=is_own),
        "vtrace/rho_clipped_fraction": masked_mean(clipped, is_transition),
        "vtrace/advantage_own": masked_mean(advantages, own & trusted),
        "vtrace/advantage_foreign": masked_mean(advantages, foreign & trusted),
        "trust_region/accepted_fraction": masked_mean(accepted, is_transition),
        "trust_region/accepted_replay_fraction": masked_mean(accepted, replayed),
        "trust_region/accepted_own_fraction": masked_mean(accepted, own),
        "trust_region/accepted_foreign_fraction": masked_mean(accepted, foreign),
    }


def divergences(
    entropy: tf.Tensor,
    kl: tf.Tensor,
    *,
    is_transition: tf.Tensor,
    is_online: tf.Tensor,
    is_own: tf.Tensor,
) -> dict[str, joint_batch.Mean]:
    """How random pi is, and how far from mu; arguments and result as of `off_policy`."""
    online, replayed = is_transition & is_online, is_transition & ~is_online
    own, foreign = replayed & is_own, replayed & ~is_own
    return {
        "policy/entropy": masked_mean(entropy, is_transition),
        "policy/kl_online": masked_mean(kl, online),
        "policy/kl_replay": masked_mean(kl, replayed),
        "policy/kl_own": masked_mean(kl, own),
        "policy/kl_foreign": masked_mean(kl, foreign),
        "replay/foreign_fraction": masked_mean(tf.cast(foreign, tf.float32), replayed),
    }


def masked_mean(values: tf.Tensor, mask: tf.Tensor) -> joint_batch.Mean:
    """Mean where `mask` holds."""
    # Not a product with the mask: what is left out may be NaN, e.g. of a blank unroll's policy.
    kept = tf.where(mask, values, 0.0)
    return joint_batch.Mean(tf.reduce_sum(kept), tf.reduce_sum(tf.cast(mask, tf.float32)))


def dead_fraction(features: tf.Tensor, mask: tf.Tensor) -> joint_batch.Mean:
    """The share of features that are 0 or less at all steps where `mask` holds.

    A unit before ReLU that is negative for every observation gets no gradient, and stays so.

    Args:
      features: [T, B, F], after ReLU; an LSTM's are hardly ever below 0 all the time.
      mask: bool [T, B].
    """
    alive = tf.cast((features > 0) & mask[:, :, None], tf.float32)
    steps = tf.reduce_sum(tf.cast(mask, tf.float32))
    steps_alive, steps = joint_batch.total((tf.reduce_sum(alive, axis=[0, 1]), steps))
    dead = tf.cast((steps_alive == 0) & (steps > 0), tf.float32)
    return joint_batch.Mean(tf.reduce_sum(dead), tf.reduce_sum(tf.ones_like(dead)) * tf.sign(steps))


PRIORITY_FLOOR = 1e-3


def critic_priorities(values: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """The critic's loss of each unroll, 1/2 (v_t - V(x_t))^2, as a mean (LASER, section A.2).

    A small floor is added: what was wholly rejected once may be trusted later, and so has to be
    drawn now and then.

    Args:
      values: float32 [T, B].
      targets: float32 [T, B].
      mask: bool [T, B]; false entries are not read.

    Returns:
      float32 [B], at least `PRIORITY_FLOOR`.
    """
    errors = tf.where(mask, tf.square(targets - values), 0.0)
    counts = tf.reduce_sum(tf.cast(mask, tf.float32), axis=0)
    return PRIORITY_FLOOR + 0.5 * tf.reduce_sum(errors, axis=0) / tf.maximum(counts, 1.0)

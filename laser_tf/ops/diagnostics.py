"""Metrics and replay priorities of a batch; not part of any loss."""

import math

import tensorflow as tf

from laser_tf.ops import joint_batch


def off_policy_metrics(
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
    """Returns `policy_metrics` and metrics of V-trace and the trust region, by name.

    Args:
      entropy: Entropy of pi, float32 [T, B].
      kl: KL(pi || mu), float32 [T, B].
      log_rhos: Log importance ratios log pi(a|x) - log mu(a|x), float32 [T, B].
      advantages: Advantages of the actions taken, float32 [T, B]; only read where `trusted`.
      is_transition: Mask, bool [T, B]; false between two episodes.
      trusted: Mask of the transitions inside the trust region, bool [T, B].
      is_online: True for fresh unrolls, false for replayed ones, bool [B].
      is_own: False for unrolls that another member of the sweep collected, bool [B].
      rho_bar: Clip of the importance ratios in V-trace.
    """
    replayed = is_transition & ~is_online
    clipped = tf.cast(log_rhos > math.log(rho_bar), tf.float32)
    accepted = tf.cast(trusted, tf.float32)
    own, foreign = replayed & is_own, replayed & ~is_own
    return {
        **policy_metrics(
            entropy, kl, is_transition=is_transition, is_online=is_online, is_own=is_own
        ),
        "vtrace/rho_clipped_fraction": masked_mean(clipped, is_transition),
        "vtrace/advantage_own": masked_mean(advantages, own & trusted),
        "vtrace/advantage_foreign": masked_mean(advantages, foreign & trusted),
        "trust_region/accepted_fraction": masked_mean(accepted, is_transition),
        "trust_region/accepted_replay_fraction": masked_mean(accepted, replayed),
        "trust_region/accepted_own_fraction": masked_mean(accepted, own),
        "trust_region/accepted_foreign_fraction": masked_mean(accepted, foreign),
    }


def policy_metrics(
    entropy: tf.Tensor,
    kl: tf.Tensor,
    *,
    is_transition: tf.Tensor,
    is_online: tf.Tensor,
    is_own: tf.Tensor,
) -> dict[str, joint_batch.Mean]:
    """Returns means of entropy and KL(pi || mu). See `off_policy_metrics` for the arguments."""
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
    """Returns the mean of the values where `mask` is true."""
    # tf.where instead of a product, because masked values may be NaN, e.g. in padding.
    kept = tf.where(mask, values, 0.0)
    return joint_batch.Mean(tf.reduce_sum(kept), tf.reduce_sum(tf.cast(mask, tf.float32)))


def dead_fraction(features: tf.Tensor, mask: tf.Tensor) -> joint_batch.Mean:
    """Returns the fraction of features that are 0 or less at all steps where `mask` is true.

    A ReLU unit with a negative input for every observation receives no gradient and stays dead.

    Args:
      features: Outputs of a ReLU layer, [T, B, F]. The outputs of an LSTM are rarely 0 or less at
        all steps.
      mask: Mask of the steps, bool [T, B].
    """
    alive = tf.cast((features > 0) & mask[:, :, None], tf.float32)
    steps = tf.reduce_sum(tf.cast(mask, tf.float32))
    steps_alive, steps = joint_batch.all_reduce_sum((tf.reduce_sum(alive, axis=[0, 1]), steps))
    dead = tf.cast((steps_alive == 0) & (steps > 0), tf.float32)
    return joint_batch.Mean(tf.reduce_sum(dead), tf.reduce_sum(tf.ones_like(dead)) * tf.sign(steps))


PRIORITY_FLOOR = 1e-3


def critic_priorities(values: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the mean critic loss of each unroll, float32 [B] (LASER, section A.2).

    The loss is 1/2 (v_t - V(x_t))^2. `PRIORITY_FLOOR` is added, so that replay also samples unrolls
    that the trust region rejects entirely. It may accept them later.

    Args:
      values: Values V(x_t), float32 [T, B].
      targets: Targets v_t, float32 [T, B].
      mask: Mask, bool [T, B]. Values and targets are not read where it is false.
    """
    errors = tf.where(mask, tf.square(targets - values), 0.0)
    counts = tf.reduce_sum(tf.cast(mask, tf.float32), axis=0)
    return PRIORITY_FLOOR + 0.5 * tf.reduce_sum(errors, axis=0) / tf.maximum(counts, 1.0)

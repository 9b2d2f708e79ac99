"""ACER's baselines: A3C, Trust-A3C, TIS and Trust-TIS (Wang et al. 2017, section 6, appendix E.2).

A3C (Mnih et al. 2016) follows the on-policy gradient of n-step returns. TIS learns from replay and
weights this gradient by truncated products of importance ratios (Wawrzynski 2009). The Trust-
variants add ACER's trust region around an average policy.
"""

from typing import Any

import tensorflow as tf

from laser_tf import types
from laser_tf.agents import acer_config, average_policy
from laser_tf.networks import heads
from laser_tf.ops import diagnostics, importance_truncation, policy_gradient, vtrace


class A3C(average_policy.AveragePolicyAgent):
    """A3C and TIS agents, with or without a trust region; implements `base.Agent`."""

    _config: acer_config.A3CConfig

    def _create_critic(self, spec: types.EnvironmentSpec, features: tf.Tensor) -> Any:
        critic = heads.dense(1)
        critic(features)
        return critic

    def loss(self, unroll: types.Unroll) -> types.LossOutput:
        """Computes the baselines' loss (appendix E.2), summed over T and B.

            policy  w_t (R_t - V(x_t)) grad log pi(a_t|x_t)
            value   w_t (R_t - V(x_t)) grad V(x_t)

        R_t is the discounted sum of rewards up to the end of the unroll or episode. If the end is
        not terminal, R_t bootstraps from V. w_t is 1 (A3C) or min(c, rho_t ... rho_{T-1}) (TIS).
        """
        experience = self._compute_experience(unroll)
        values = self._critic(experience.features)[..., 0]
        is_transition = experience.is_transition
        # V-trace with ratios of 1 computes R_t (IMPALA, section 4.1).
        returns = vtrace.vtrace(
            tf.zeros_like(experience.log_rhos),
            experience.discounts,
            experience.rewards,
            values,
            is_transition,
        ).values
        weights = self._weights(experience)
        advantages = returns - tf.stop_gradient(values[:-1])
        policy_loss, metrics = self._policy_loss(
            unroll, experience, (weights * advantages)[..., None] * experience.score
        )
        value_loss = policy_gradient.baseline_loss(
            values[:-1], returns, is_transition, unroll.importance_weight * weights
        )
        loss = policy_loss + self._config.critic_cost * value_loss
        metrics |= {
            "loss/total": loss,
            "loss/policy": policy_loss,
            "loss/value": value_loss,
            "n_step/value": diagnostics.masked_mean(values[:-1], is_transition),
            "n_step/weight": diagnostics.masked_mean(weights, is_transition),
        }
        priorities = diagnostics.critic_priorities(
            tf.stop_gradient(values[:-1]), returns, is_transition
        )
        return types.LossOutput(loss, metrics, priorities)

    def _weights(self, experience: average_policy.Experience) -> tf.Tensor:
        """Computes w_t, float32 [T, B]."""
        if self._config.importance == acer_config.NONE:
            return tf.ones_like(experience.log_rhos)
        return importance_truncation.truncated_products(
            experience.log_rhos,
            experience.discounts,
            experience.is_transition,
            self._config.truncation,
        )

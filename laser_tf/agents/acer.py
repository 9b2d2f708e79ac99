"""ACER: sample efficient actor-critic with experience replay (Wang et al. 2017).

Implements discrete actions (algorithms 1 and 2) and continuous actions (algorithm 3). The replay
configuration sets algorithm 1's replay ratio. With `replay.scheme=online` the agent is on-policy:
A3C with Q instead of V and a trust region around an average policy.
"""

import tensorflow as tf
from dm_env import specs

from laser_tf import types
from laser_tf.agents import acer_config, acer_critics, average_policy, base
from laser_tf.ops import diagnostics, importance_truncation, retrace


class Acer(average_policy.AveragePolicyAgent):
    """ACER agent; implements `base.Agent`."""

    _config: acer_config.AcerConfig

    def __init__(self, config: acer_config.AcerConfig, context: base.AgentContext):
        super().__init__(config, context)
        self._seed = context.seed
        # The loss does not use the generator of `act`, so that its samples depend only on the
        # number of updates.
        self._updates = tf.Variable(0, trainable=False, dtype=tf.int64)

    def _create_critic(
        self, spec: types.EnvironmentSpec, features: tf.Tensor
    ) -> acer_critics.Critic:
        config, action = self._config, spec.action
        critic: acer_critics.Critic = (
            acer_critics.DiscreteCritic(config, action.num_values, self._statistics)
            if isinstance(action, specs.DiscreteArray)
            else acer_critics.DuelingCritic(config, action, self._distribution, self._statistics)
        )
        critic(features)
        return critic

    def after_update(self) -> None:
        """Updates the average policy and counts updates."""
        super().after_update()
        self._updates.assign_add(1)

    def loss(self, unroll: types.Unroll) -> types.LossOutput:
        """Computes the loss of algorithms 2 and 3, summed over T and B."""
        config = self._config
        experience = self._compute_experience(unroll)
        critic_output = self._critic.evaluate(experience, self._next_seed())
        q_ret, policy_return = self._returns(experience, critic_output)
        # rho_bar grad log f(a_t|phi) (Q^ret - V) + correction   (equations 10 and 16)
        rhos = importance_truncation.truncated_ratios(experience.log_rhos, config.truncation)
        advantages = policy_return - tf.stop_gradient(critic_output.values[:-1])
        gradient = (rhos * advantages)[..., None] * experience.score + critic_output.correction
        policy_loss, metrics = self._policy_loss(unroll, experience, gradient)
        losses = self._critic.losses(critic_output, q_ret, experience, unroll.importance_weight)
        loss = policy_loss + config.critic_cost * tf.add_n(list(losses.values()))
        is_transition, mean = experience.is_transition, diagnostics.masked_mean
        errors = tf.abs(q_ret - critic_output.q_taken)
        is_truncated = tf.exp(experience.log_rhos) > config.truncation
        metrics |= {
            "loss/total": loss,
            "loss/policy": policy_loss,
            **{f"loss/{name}": term for name, term in losses.items()},
            "retrace/value": mean(critic_output.values[:-1], is_transition),
            "retrace/absolute_error": mean(errors, is_transition),
            "retrace/rho_truncated_fraction": mean(is_truncated, is_transition),
        }
        priorities = diagnostics.critic_priorities(
            tf.stop_gradient(critic_output.q_taken), q_ret, is_transition
        )
        return types.LossOutput(loss, metrics, priorities)

    def _returns(
        self, experience: average_policy.Experience, critic_output: acer_critics.CriticOutput
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Computes Q^ret, the critic's target, and the policy gradient's return, float32 [T, B].

        The return of the policy gradient is Q^ret or Q^opc, the Q(lambda) return, whose traces
        replace rho_bar by 1 (appendix B).
        """
        critic = self._critic
        rho_bars = importance_truncation.truncated_ratios(
            experience.log_rhos / critic.trace_root, 1.0
        )

        def returns(traces: tf.Tensor) -> tf.Tensor:
            return retrace.retrace(
                experience.rewards,
                experience.discounts,
                critic_output.q_taken,
                critic_output.values,
                self._config.lambda_ * traces,
                experience.is_transition,
            )

        q_ret = returns(rho_bars)
        return q_ret, q_ret if critic.uses_q_ret_for_policy else returns(tf.ones_like(rho_bars))

    def _next_seed(self) -> tf.Tensor:
        """Returns a seed, int64 [2], that is unique to the update and the replica."""
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        replica = tf.cast(tf.convert_to_tensor(replica), tf.int64)
        return tf.stack([self._seed + 2**32 * replica, self._updates])

"""ACER: sample efficient actor-critic with experience replay (Wang et al. 2017).

Discrete actions (algorithms 1 and 2) and continuous ones (algorithm 3); the replay ratio of
algorithm 1 is the replay's. At ratio 0 it is on-policy: A3C with Q instead of V, held near an
average policy.
"""

import tensorflow as tf
from dm_env import specs

from laser_tf import types
from laser_tf.agents import acer_config, acer_critics, average_policy, base
from laser_tf.ops import diagnostics, importance_truncation, retrace


class Acer(average_policy.AveragePolicyAgent):
    """The agent; see `base.Agent` for what is not described here."""

    _config: acer_config.AcerConfig

    def __init__(self, config: acer_config.AcerConfig, context: base.Context):
        """Creates the agent with all its weights.

        Raises:
          ValueError: for an option that does not fit the environment's observations or actions.
        """
        super().__init__(config, context)
        self._seed = context.seed
        # Not the generator that acts: what a loss draws depends on nothing but the update.
        self._updates = tf.Variable(0, trainable=False, dtype=tf.int64)

    def _create_critic(self, spec: types.EnvironmentSpec, features: tf.Tensor) -> None:
        config, action = self._config, spec.action
        if isinstance(action, specs.DiscreteArray):
            self._critic: acer_critics.Critic = acer_critics.DiscreteCritic(
                config, action.num_values, self._statistics
            )
        else:
            self._critic = acer_critics.DuelingCritic(
                config, action, self._distribution, self._statistics
            )
        self._critic(features)

    @property
    def _critic_variables(self) -> tuple[tf.Variable, ...]:
        return self._critic.trainable_variables

    def after_update(self) -> None:
        """Moves the average policy."""
        super().after_update()
        self._updates.assign_add(1)

    def loss(self, unroll: types.Unroll) -> types.LossOutput:
        """Algorithms 2 and 3, summed over T and B; the step between two episodes has no part in it.

        Args:
          unroll: [T + 1, B, ...].

        Returns:
          The loss with its metrics, and the critic's losses as priorities.
        """
        config = self._config
        experience = self._read(unroll)
        judgement = self._critic.judge(experience, self._next_seed())
        q_ret, policy_return = self._returns(experience, judgement)
        # rho_bar grad log f(a_t|phi) (Q^ret - V) + correction   (equations 10 and 16)
        rhos = importance_truncation.truncated(experience.log_rhos, config.truncation)
        advantages = policy_return - tf.stop_gradient(judgement.values[:-1])
        gradient = (rhos * advantages)[..., None] * experience.score + judgement.correction
        policy_loss, metrics = self._policy_loss(unroll, experience, gradient)
        losses = self._critic.losses(judgement, q_ret, experience, unroll.importance_weight)
        loss = policy_loss + config.critic_cost * tf.add_n(list(losses.values()))
        is_transition = experience.is_transition
        metrics |= {
            "loss/total": loss,
            "loss/policy": policy_loss,
            **{f"loss/{name}": term for name, term in losses.items()},
            "retrace/value": diagnostics.masked_mean(judgement.values[:-1], is_transition),
            "retrace/absolute_error": diagnostics.masked_mean(
                tf.abs(q_ret - judgement.q_taken), is_transition
            ),
            "retrace/rho_truncated_fraction": diagnostics.masked_mean(
                tf.cast(tf.exp(experience.log_rhos) > config.truncation, tf.float32), is_transition
            ),
        }
        priorities = diagnostics.critic_priorities(
            tf.stop_gradient(judgement.q_taken), q_ret, is_transition
        )
        return types.LossOutput(loss, metrics, priorities)

    def _returns(
        self, experience: average_policy.Experience, judgement: acer_critics.Judgement
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Q^ret, what the critic learns, and the policy gradient's return, float32 [T, B] each.

        lambda is in both: Q^opc, whose traces have 1 for rho_bar, is Q(lambda)'s (appendix B).
        """
        critic = self._critic
        cut = importance_truncation.truncated(experience.log_rhos / critic.trace_root, 1.0)

        def returns(traces: tf.Tensor) -> tf.Tensor:
            return retrace.retrace(
                experience.rewards,
                experience.discounts,
                judgement.q_taken,
                judgement.values,
                self._config.lambda_ * traces,
                experience.is_transition,
            )

        q_ret = returns(cut)
        return q_ret, q_ret if critic.cuts_policy_return else returns(tf.ones_like(cut))

    def _next_seed(self) -> tf.Tensor:
        """Integers [2], of one update on one replica."""
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        replica = tf.cast(tf.convert_to_tensor(replica), tf.int64)
        return tf.stack([self._seed + 2**32 * replica, self._updates])

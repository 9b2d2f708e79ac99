"""Reactor: an actor-critic that learns from replayed sequences alone (Gruslys et al. 2018).

Its critic learns by (distributional) Retrace, its policy by beta leave-one-out.
"""

import math
from typing import Any, NamedTuple

import tensorflow as tf

from laser_tf import types
from laser_tf.agents import base, policy_agent, reactor_config, reactor_critics, target_network
from laser_tf.distributions import categorical
from laser_tf.networks import reactor_network
from laser_tf.ops import (
    diagnostics,
    joint_batch,
    leave_one_out,
    n_step,
    reward_clipping,
)


class _Learned(NamedTuple):
    """The transitions that are learned from, those after the burn-in."""

    online: reactor_network.ReactorOutput  # [T, B, ...], at x_0 .. x_{T-1}; receives the gradient
    target: reactor_network.ReactorOutput  # [T + 1, B, ...], at x_0 .. x_T; x_0 is not read
    log_mu: tf.Tensor  # float32 [T, B, A]
    transitions: reactor_critics.Transitions


class Reactor(policy_agent.PolicyAgent, target_network.TargetNetworkAgent):
    """The agent; see `base.Agent` for what is not described here.

    Beside an action it stores mu, the probabilities that it was drawn with, as logits.
    """

    def __init__(self, config: reactor_config.ReactorConfig, context: base.Context):
        """Creates the agent with all its weights, the target network's equal to the online one's.

        Raises:
          ValueError: for continuous actions, whose probabilities cannot be summed over.
        """
        spec = context.spec
        config.check_actions(spec.action)
        super().__init__(
            categorical.Categorical(spec.action.num_values),
            entropy_cost=config.entropy_cost,
            seed=context.seed,
        )
        self._config = config
        self._critic: reactor_critics.Critic = (
            reactor_critics.CategoricalCritic(config.v_min, config.v_max, config.bins)
            if config.distributional
            else reactor_critics.ScalarCritic()
        )

        def make() -> reactor_network.ReactorNetwork:
            return reactor_network.ReactorNetwork(
                config,
                spec,
                context.dtype,
                bins=self._critic.bins,
                hidden_units=config.hidden_units,
                uniform_share=config.uniform_share,
            )

        self._create_networks(make, context, config.target_period)

    def _policy_outputs(
        self, env_output: types.EnvOutput, core_state: Any
    ) -> tuple[tf.Tensor, Any]:
        output, core_state = self._online(env_output, core_state)
        return tf.math.log(output.policy), core_state

    def loss(self, unroll: types.Unroll) -> types.LossOutput:
        """Retrace for the critic, beta-LOO for the policy: summed over time, a mean over sequences.

        Several learners take the mean over their joint batch, this being one share of it. The whole
        loss of a sequence is weighted against its having been drawn by priority (section 3.3).

        The first `burn_in` steps, none in the paper, carry all core states on, without gradient.

        Args:
          unroll: [T + 1, B, ...].

        Returns:
          The loss with its metrics, and the sequences' new priorities.
        """
        self._online.observe(unroll.env_output)
        learned = self._read(unroll)
        is_transition = learned.transitions.is_transition
        judgement = self._critic.judge(
            learned.online.critic, learned.target.critic, learned.transitions
        )
        q_values = self._critic.action_values(learned.online.critic)
        log_pi = tf.math.log(learned.online.policy)
        terms = {
            "critic": judgement.losses,
            "policy": self._policy_losses(learned, q_values, judgement.returns),
            "entropy": -self._distribution.entropy(log_pi),
        }
        losses = {name: _total(unroll, term, is_transition) for name, term in terms.items()}
        loss = losses["critic"] + losses["policy"] + self.entropy_cost * losses["entropy"]
        metrics = {
            "loss/total": loss,
            **{f"loss/{name}": term for name, term in losses.items()},
            **self._metrics(unroll, learned, judgement, q_values, log_pi),
        }
        # The mean alone (section 3.3).
        priorities = n_step.sequence_priorities(judgement.errors, is_transition, eta=0.0)
        return types.LossOutput(loss, metrics, priorities)

    def _metrics(
        self,
        unroll: types.Unroll,
        learned: _Learned,
        judgement: reactor_critics.Judgement,
        q_values: tf.Tensor,
        log_pi: tf.Tensor,
    ) -> dict[str, joint_batch.Mean]:
        """Of q_values and log_pi, float32 [T, B, A], of the online network."""
        transitions, is_transition = learned.transitions, learned.transitions.is_transition
        values = tf.reduce_sum(tf.exp(log_pi) * q_values, axis=-1)
        q_taken = tf.gather(q_values, transitions.actions, axis=-1, batch_dims=2)
        errors = tf.abs(judgement.returns - q_taken)
        return {
            "retrace/value": diagnostics.masked_mean(values, is_transition),
            "retrace/absolute_error": diagnostics.masked_mean(errors, is_transition),
            "retrace/trace": diagnostics.masked_mean(transitions.traces, is_transition),
            "replay/importance_weight": diagnostics.masked_mean(
                unroll.importance_weight, tf.ones_like(unroll.is_online)
            ),
            **judgement.metrics,
            **diagnostics.divergences(
                self._distribution.entropy(log_pi),
                self._distribution.kl_divergence(log_pi, learned.log_mu),
                is_transition=is_transition,
                is_online=unroll.is_online,
                is_own=unroll.is_own,
            ),
        }

    def _read(self, unroll: types.Unroll) -> _Learned:
        """Runs the online network over x_0 .. x_{T-1}, the target network over x_1 .. x_T.

        The latter reads x_0, too, to carry its core states on, as the paper's would have to.
        """
        config = self._config
        learned = self._after_burn_in(unroll)
        env_output, agent_output = learned.env_output, learned.agent_output
        but_last = tf.nest.map_structure(lambda leaf: leaf[:-1], env_output)
        online, _ = self._online(but_last, self._state_after_burn_in(self._online, unroll))
        target, _ = self._target(env_output, self._state_after_burn_in(self._target, unroll))
        is_transition = tf.logical_not(env_output.is_first[1:])
        log_mu, actions = agent_output.policy[:-1], agent_output.action[:-1]
        # c_t = lambda min(1, pi / mu) (equation 4), pi the policy that values are taken under.
        log_rhos = self._distribution.log_importance_ratio(
            tf.math.log(target.policy[:-1]), log_mu, actions, ()
        )
        transitions = reactor_critics.Transitions(
            actions,
            reward_clipping.REWARD_CLIPS[config.reward_clip](env_output.reward[1:]),
            config.discount * env_output.discount[1:],
            target.policy,
            config.lambda_ * tf.exp(tf.minimum(log_rhos, 0.0)),
            is_transition,
        )
        return _Learned(online, target, log_mu, transitions)

    def _policy_losses(
        self, learned: _Learned, q_values: tf.Tensor, returns: tf.Tensor
    ) -> tf.Tensor:
        """Minus the estimate of sum_a Q^pi(x_t, a) grad pi(a|x_t): float32 [T, B].

        Args:
          learned: what is learned from.
          q_values: float32 [T, B, A], of the online network.
          returns: float32 [T, B], R_t.
        """
        config, transitions = self._config, learned.transitions
        pi, mu = learned.online.policy, tf.nn.softmax(learned.log_mu)
        actions, mask = transitions.actions, transitions.is_transition
        if config.policy_gradient == "tislr":
            return leave_one_out.truncated_importance_sampling(
                pi, q_values, returns, actions, mu, mask, config.truncation
            )
        clips = {"beta_loo": config.truncation, "loo": 1.0, "one_over_mu_loo": math.inf}
        mu_taken = tf.gather(mu, actions, axis=-1, batch_dims=2)
        return leave_one_out.beta_leave_one_out(
            pi, q_values, returns, actions, mu_taken, mask, clips[config.policy_gradient]
        )


def _total(unroll: types.Unroll, losses: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """A share of the joint batch's mean over sequences of their weighted sums over [T, B]."""
    sums = tf.reduce_sum(tf.where(mask, losses, 0.0), axis=0)
    return tf.reduce_mean(unroll.importance_weight * sums) / joint_batch.shares()

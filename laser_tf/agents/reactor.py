"""Reactor: an actor-critic that learns only from replayed sequences (Gruslys et al. 2018).

The critic learns from (distributional) Retrace, the policy from beta leave-one-out gradients.
"""

import math
from typing import Any, NamedTuple

import tensorflow as tf

from laser_tf import types
from laser_tf.agents import base, reactor_config, reactor_critics, target_network
from laser_tf.distributions import categorical
from laser_tf.networks import reactor_network
from laser_tf.ops import (
    action_mask,
    diagnostics,
    joint_batch,
    leave_one_out,
    n_step,
    reward_clipping,
)


class _LossInputs(NamedTuple):
    """Network outputs and transitions after the burn-in."""

    online: reactor_network.ReactorOutput  # at x_0 .. x_{T-1}, [T, B, ...]; differentiable
    target: reactor_network.ReactorOutput  # at x_0 .. x_T, [T + 1, B, ...]; x_0 is ignored
    log_mu: tf.Tensor  # float32 [T, B, A]
    transitions: reactor_critics.Transitions


class Reactor(base.PolicyAgent, target_network.TargetNetworkAgent):
    """Reactor agent; implements `base.Agent`.

    `AgentOutput.policy` holds log mu, the log-probabilities of the policy that acted. Q-values of
    forbidden actions need no mask, because all expectations weight them by pi, which is 0.
    """

    def __init__(self, config: reactor_config.ReactorConfig, context: base.AgentContext):
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
        self._create_networks(
            reactor_network.ReactorNetwork,
            config,
            context,
            bins=self._critic.bins,
            hidden_units=config.hidden_units,
            uniform_share=config.uniform_share,
        )

    def _policy_outputs(
        self, env_output: types.EnvOutput, core_state: Any
    ) -> tuple[tf.Tensor, Any]:
        output, core_state = self._online(env_output, core_state)
        return action_mask.log_probabilities(output.policy), core_state

    def loss(self, unroll: types.Unroll) -> types.LossOutput:
        """Computes the Retrace loss of the critic and the beta-LOO loss of the policy.

        The loss is a sum over time and a mean over the sequences of the joint batch. Importance
        weights correct all terms for prioritised sampling (section 3.3). The first `burn_in` steps
        (0 in the paper) only update the core states, without gradient.
        """
        inputs = self._compute_loss_inputs(unroll)
        is_transition = inputs.transitions.is_transition
        critic_output = self._critic.evaluate(
            inputs.online.critic, inputs.target.critic, inputs.transitions
        )
        q_values = self._critic.action_values(inputs.online.critic)
        log_pi = action_mask.log_probabilities(inputs.online.policy)
        terms = {
            "critic": critic_output.losses,
            "policy": self._policy_losses(inputs, q_values, critic_output.returns),
            "entropy": -self._distribution.entropy(log_pi),
        }
        losses = {
            name: target_network.sequence_mean(unroll, term, is_transition)
            for name, term in terms.items()
        }
        loss = losses["critic"] + losses["policy"] + self.entropy_cost * losses["entropy"]
        metrics = {
            "loss/total": loss,
            **{f"loss/{name}": term for name, term in losses.items()},
            **self._metrics(unroll, inputs, critic_output, q_values, log_pi),
        }
        # eta = 0: the priority is the mean error (section 3.3).
        priorities = n_step.sequence_priorities(critic_output.errors, is_transition, eta=0.0)
        return types.LossOutput(loss, metrics, priorities)

    def _metrics(
        self,
        unroll: types.Unroll,
        inputs: _LossInputs,
        critic_output: reactor_critics.CriticOutput,
        q_values: tf.Tensor,
        log_pi: tf.Tensor,
    ) -> dict[str, joint_batch.Mean]:
        """Computes metrics from Q-values and log pi of the online network, float32 [T, B, A]."""
        transitions, is_transition = inputs.transitions, inputs.transitions.is_transition
        values = tf.reduce_sum(tf.exp(log_pi) * q_values, axis=-1)
        q_taken = tf.gather(q_values, transitions.actions, axis=-1, batch_dims=2)
        errors = tf.abs(critic_output.returns - q_taken)
        kl = self._distribution.kl_divergence(log_pi, inputs.log_mu)
        mean = diagnostics.masked_mean
        weight_mean = mean(unroll.importance_weight, tf.ones_like(unroll.is_online))
        return {
            "retrace/value": mean(values, is_transition),
            "retrace/absolute_error": mean(errors, is_transition),
            "retrace/trace": mean(transitions.traces, is_transition),
            "replay/importance_weight": weight_mean,
            **critic_output.metrics,
            **self._policy_metrics(log_pi, kl, is_transition, unroll),
        }

    def _compute_loss_inputs(self, unroll: types.Unroll) -> _LossInputs:
        """Evaluates the online network on x_0 .. x_{T-1}, the target network on x_1 .. x_T.

        The target network also reads x_0, but only to update its core states.
        """
        config = self._config
        learned = self._drop_burn_in(unroll)
        env_output, agent_output = learned.env_output, learned.agent_output
        online_steps = tf.nest.map_structure(lambda leaf: leaf[:-1], env_output)
        online, _ = self._online(online_steps, self._state_after_burn_in(self._online, unroll))
        target, _ = self._target(env_output, self._state_after_burn_in(self._target, unroll))
        is_transition = tf.logical_not(env_output.is_first[1:])
        log_mu, actions = agent_output.policy[:-1], agent_output.action[:-1]
        # c_t = lambda min(1, pi / mu) (equation 4), where pi is the target network's policy.
        log_rhos = self._distribution.log_importance_ratio(
            action_mask.log_probabilities(target.policy[:-1]), log_mu, actions, ()
        )
        transitions = reactor_critics.Transitions(
            actions,
            reward_clipping.REWARD_CLIPS[config.reward_clip](env_output.reward[1:]),
            config.discount * env_output.discount[1:],
            target.policy,
            config.lambda_ * tf.exp(tf.minimum(log_rhos, 0.0)),
            is_transition,
        )
        return _LossInputs(online, target, log_mu, transitions)

    def _policy_losses(
        self, inputs: _LossInputs, q_values: tf.Tensor, returns: tf.Tensor
    ) -> tf.Tensor:
        """Computes losses [T, B] with the gradient - sum_a Q^pi(x_t, a) grad pi(a|x_t).

        `q_values` of the online network are float32 [T, B, A], `returns` R_t are float32 [T, B].
        """
        config, transitions = self._config, inputs.transitions
        pi, mu = inputs.online.policy, tf.nn.softmax(inputs.log_mu)
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

"""R2D2: recurrent double Q-learning from prioritised replay (Kapturowski et al. 2019)."""

from typing import Any

import tensorflow as tf

from laser_tf import types
from laser_tf.agents import base, r2d2_config, target_network
from laser_tf.networks import trunk_network
from laser_tf.ops import (
    diagnostics,
    epsilon_greedy,
    joint_batch,
    n_step,
    q_discrepancy,
    reward_clipping,
)


class R2D2(target_network.TargetNetworkAgent):
    """R2D2 agent; `AgentOutput.extras` holds the acting network's Q-values, float32 [B, A]."""

    def __init__(self, config: r2d2_config.R2D2Config, context: base.AgentContext):
        super().__init__()
        spec = context.spec
        config.check_actions(spec.action)
        self._config = config
        self._num_tasks = spec.num_tasks
        self._is_evaluating = context.is_evaluating
        self._actor_index, self._num_actors = context.actor_index, context.num_actors
        self._random = tf.random.Generator.from_seed(context.seed)
        self._create_networks(
            trunk_network.QNetwork,
            config,
            context,
            hidden_units=config.hidden_units,
            reset_at_life_loss=config.reset_at_life_loss,
        )

    def act(
        self, env_output: types.EnvOutput, core_state: Any, seed: tf.Tensor | None = None
    ) -> tuple[types.AgentOutput, Any]:
        """Selects epsilon-greedy actions; each environment of a task has a different epsilon."""
        step = tf.nest.map_structure(lambda tensor: tensor[None], env_output)
        q_values, core_state = self._online(step, core_state)
        seed = self._random.make_seeds(1)[:, 0] if seed is None else seed
        epsilons = self._epsilons(tf.shape(q_values)[1])
        action = epsilon_greedy.sample(q_values[0], epsilons, seed)
        return types.AgentOutput(action, extras=q_values[0]), core_state

    def greedy_action(self, agent_output: types.AgentOutput) -> tf.Tensor:
        """Returns the action with the largest Q-value."""
        return tf.argmax(agent_output.extras, axis=-1, output_type=tf.int32)

    def action_preferences(self, agent_output: types.AgentOutput) -> tf.Tensor:
        """Returns the Q-values, float32 [..., A]."""
        return agent_output.extras

    def initial_priorities(self, unroll: types.Unroll) -> tf.Tensor:
        """Computes priorities from the actor's Q-values in place of both networks'."""
        learned = self._drop_burn_in(unroll)
        q_values = learned.agent_output.extras
        errors, is_transition = self._td_errors(learned, q_values, q_values)
        return n_step.sequence_priorities(errors, is_transition, self._config.priority_eta)

    def loss(self, unroll: types.Unroll) -> types.LossOutput:
        """Computes the n-step double Q-learning loss (section 2.3).

        The loss is a sum over time and a mean over the sequences of the joint batch. The first
        `burn_in` steps only update the core states of both networks, without gradient.
        """
        learned = self._drop_burn_in(unroll)
        q_values = self._q_values(self._online, unroll, learned)
        q_target = self._q_values(self._target, unroll, learned)
        errors, is_transition = self._td_errors(learned, q_values, q_target)
        loss = target_network.sequence_mean(unroll, 0.5 * tf.square(errors), is_transition)
        mean = diagnostics.masked_mean
        weight_mean = mean(unroll.importance_weight, tf.ones_like(unroll.is_online))
        metrics = {
            "loss/total": loss,
            "q_learning/q_value": mean(tf.reduce_max(q_values[:-1], axis=-1), is_transition),
            "q_learning/absolute_error": mean(tf.abs(errors), is_transition),
            "replay/importance_weight": weight_mean,
            **self._staleness_metrics(unroll, learned, q_values),
        }
        priorities = n_step.sequence_priorities(errors, is_transition, self._config.priority_eta)
        return types.LossOutput(loss, metrics, priorities)

    def _epsilons(self, batch_size: tf.Tensor) -> tf.Tensor:
        """Returns the exploration rate of each environment, float32 [B]."""
        if self._is_evaluating:
            return tf.fill([batch_size], self._config.evaluation_epsilon)
        per_task = batch_size // self._num_tasks
        ladder = epsilon_greedy.ladder(
            per_task * self._num_actors, self._config.epsilon_base, self._config.epsilon_alpha
        )
        # The stride gives each actor both large and small epsilons.
        return tf.tile(ladder[self._actor_index :: self._num_actors], [self._num_tasks])

    def _q_values(
        self, network: trunk_network.QNetwork, unroll: types.Unroll, learned: types.Unroll
    ) -> tf.Tensor:
        """Computes Q-values of the steps after a burn-in of l steps, float32 [T - l + 1, B, A]."""
        return network(learned.env_output, self._state_after_burn_in(network, unroll))[0]

    def _td_errors(
        self, learned: types.Unroll, q_values: tf.Tensor, q_target: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Computes TD errors of Q(x_t, a_t), float32 [T, B], and their mask, bool [T, B]."""
        config = self._config
        env_output = learned.env_output
        is_transition = tf.logical_not(env_output.is_first[1:])
        targets = n_step.double_q_targets(
            q_values,
            q_target,
            reward_clipping.REWARD_CLIPS[config.reward_clip](env_output.reward[1:]),
            config.discount * env_output.discount[1:],
            is_transition,
            config.n_steps,
            config.rescaling_epsilon or None,
        )
        q_taken = tf.gather(q_values[:-1], learned.agent_output.action[:-1], axis=-1, batch_dims=2)
        return targets - q_taken, is_transition

    def _staleness_metrics(
        self, unroll: types.Unroll, learned: types.Unroll, q_values: tf.Tensor
    ) -> dict[str, joint_batch.Mean]:
        """Computes Delta Q (section 3) at the first and the last step after the burn-in."""
        if unroll.stored_states == ():
            return {}
        num_steps = unroll.env_output.reward.shape[0] - 1
        last_index = tf.nest.flatten(unroll.stored_states)[0].shape[0] - 1
        metrics = {}
        for name, step, index in (
            ("first", 0, self._burn_in * last_index // num_steps),
            ("last", num_steps - self._burn_in, last_index),
        ):
            stored_state = tf.nest.map_structure(
                lambda states, index=index: states[index], unroll.stored_states
            )
            single_step = tf.nest.map_structure(
                lambda leaf, step=step: leaf[step : step + 1], learned.env_output
            )
            stored_q_values = self._online(single_step, stored_state)[0][0]
            # At the first step of an episode both core states are zero.
            mask = tf.logical_not(single_step.is_first[0])
            metrics[f"staleness/delta_q_{name}"] = diagnostics.masked_mean(
                q_discrepancy.q_discrepancy(q_values, q_values[step], stored_q_values), mask
            )
        return metrics

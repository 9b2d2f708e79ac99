"""R2D2: recurrent double Q-learning from prioritised replay (Kapturowski et al. 2019)."""

from typing import Any

import tensorflow as tf

from laser_tf import types
from laser_tf.agents import base, r2d2_config, target_network
from laser_tf.networks import q_network
from laser_tf.ops import (
    diagnostics,
    epsilon_greedy,
    joint_batch,
    n_step,
    q_discrepancy,
    reward_clipping,
)


class R2D2(target_network.TargetNetworkAgent):
    """The agent; see `base.Agent` for what is not described here.

    Beside an action it stores the Q-values, float32 [A], that it was chosen by.
    """

    def __init__(self, config: r2d2_config.R2D2Config, context: base.Context):
        """Creates the agent with all its weights, the target network's equal to the online one's.

        Raises:
          ValueError: for continuous actions, which have no largest Q-value to look for.
        """
        super().__init__()
        spec = context.spec
        config.check_actions(spec.action)
        self._config = config
        self._num_tasks = spec.num_tasks
        self._evaluating = context.evaluating
        self._actor, self._actors = context.actor, context.actors
        self._random = tf.random.Generator.from_seed(context.seed)

        def make() -> q_network.QNetwork:
            return q_network.QNetwork(
                config,
                spec,
                context.dtype,
                hidden_units=config.hidden_units,
                reset_at_life_loss=config.reset_at_life_loss,
            )

        self._create_networks(make, context, config.target_period)

    def act(
        self, env_output: types.EnvOutput, core_state: Any, seed: tf.Tensor | None = None
    ) -> tuple[types.AgentOutput, Any]:
        """Acts epsilon-greedily, each environment of a task with an epsilon of its own."""
        step = tf.nest.map_structure(lambda tensor: tensor[None], env_output)
        q_values, core_state = self._online(step, core_state)
        seed = self._random.make_seeds(1)[:, 0] if seed is None else seed
        epsilons = self._epsilons(tf.shape(q_values)[1])
        action = epsilon_greedy.sample(q_values[0], epsilons, seed)
        return types.AgentOutput(action, extras=q_values[0]), core_state

    def greedy_action(self, agent_output: types.AgentOutput) -> tf.Tensor:
        """The one with the largest Q-value."""
        return tf.argmax(agent_output.extras, axis=-1, output_type=tf.int32)

    def action_preferences(self, agent_output: types.AgentOutput) -> tf.Tensor:
        """The Q-values."""
        return agent_output.extras

    def initial_priorities(self, unroll: types.Unroll) -> tf.Tensor:
        """From the Q-values that acted, which stand in for the target network's, too."""
        learned = self._after_burn_in(unroll)
        q_values = learned.agent_output.extras
        errors, is_transition = self._errors(learned, q_values, q_values)
        return n_step.sequence_priorities(errors, is_transition, self._config.priority_eta)

    def loss(self, unroll: types.Unroll) -> types.LossOutput:
        """n-step double Q-learning (section 2.3): summed over time, a mean over sequences.

        Several learners take the mean over their joint batch, this being one share of it.

        The first `burn_in` steps carry both networks' core states on, without gradient.

        Args:
          unroll: [T + 1, B, ...].

        Returns:
          The loss with its metrics, and the sequences' new priorities.
        """
        self._online.observe(unroll.env_output)
        learned = self._after_burn_in(unroll)
        q_values = self._unroll(self._online, unroll, learned)
        q_target = self._unroll(self._target, unroll, learned)
        errors, is_transition = self._errors(learned, q_values, q_target)
        squares = tf.where(is_transition, 0.5 * tf.square(errors), 0.0)
        weighted = unroll.importance_weight * tf.reduce_sum(squares, axis=0)
        loss = tf.reduce_mean(weighted) / joint_batch.shares()
        metrics = {
            "loss/total": loss,
            "q_learning/q_value": diagnostics.masked_mean(
                tf.reduce_max(q_values[:-1], axis=-1), is_transition
            ),
            "q_learning/absolute_error": diagnostics.masked_mean(tf.abs(errors), is_transition),
            "replay/importance_weight": diagnostics.masked_mean(
                unroll.importance_weight, tf.ones_like(unroll.is_online)
            ),
            **self._staleness(unroll, learned, q_values),
        }
        priorities = n_step.sequence_priorities(errors, is_transition, self._config.priority_eta)
        return types.LossOutput(loss, metrics, priorities)

    def _epsilons(self, batch_size: tf.Tensor) -> tf.Tensor:
        """int32 [] -> float32 [B]."""
        if self._evaluating:
            return tf.fill([batch_size], self._config.evaluation_epsilon)
        per_task = batch_size // self._num_tasks
        ladder = epsilon_greedy.ladder(
            per_task * self._actors, self._config.epsilon_base, self._config.epsilon_alpha
        )
        # Each actor has bold and timid ones.
        return tf.tile(ladder[self._actor :: self._actors], [self._num_tasks])

    def _unroll(
        self, network: q_network.QNetwork, unroll: types.Unroll, learned: types.Unroll
    ) -> tf.Tensor:
        """Q-values float32 [T - l + 1, B, A] of the steps after the burn-in."""
        return network(learned.env_output, self._state_after_burn_in(network, unroll))[0]

    def _errors(
        self, learned: types.Unroll, q_values: tf.Tensor, q_target: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Errors of Q(x_t, a_t), float32 [T, B], and where there is a transition, bool [T, B]."""
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
        taken = tf.gather(q_values[:-1], learned.agent_output.action[:-1], axis=-1, batch_dims=2)
        return targets - taken, is_transition

    def _staleness(
        self, unroll: types.Unroll, learned: types.Unroll, q_values: tf.Tensor
    ) -> dict[str, joint_batch.Mean]:
        """Delta Q (section 3) at the first and the last step after the burn-in."""
        if unroll.stored_states == ():
            return {}
        steps = unroll.env_output.reward.shape[0] - 1
        parts = tf.nest.flatten(unroll.stored_states)[0].shape[0] - 1
        metrics = {}
        for name, step, part in (
            ("first", 0, self._burn_in * parts // steps),
            ("last", steps - self._burn_in, parts),
        ):
            state = tf.nest.map_structure(
                lambda states, part=part: states[part], unroll.stored_states
            )
            only = tf.nest.map_structure(
                lambda leaf, step=step: leaf[step : step + 1], learned.env_output
            )
            stored = self._online(only, state)[0][0]
            # Where an episode begins, both states are zero.
            inside = tf.logical_not(only.is_first[0])
            metrics[f"staleness/delta_q_{name}"] = diagnostics.masked_mean(
                q_discrepancy.q_discrepancy(q_values, q_values[step], stored), inside
            )
        return metrics

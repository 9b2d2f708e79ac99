"""R2D2: recurrent double Q-learning from distributed, prioritised replay (Kapturowski et al. 2019).

Its behaviour "logits", in `types.AgentOutput` and in replay, are the Q-values that it acted on.
"""

from typing import Any

import tensorflow as tf

from laser_tf import types
from laser_tf.agents import r2d2_config
from laser_tf.networks import q_network, trunk
from laser_tf.ops import diagnostics, epsilon_greedy, n_step, q_discrepancy, reward_clipping


class R2D2(tf.Module):
    """The agent; `laser_tf.types` holds the time convention of everything it reads."""

    def __init__(
        self,
        config: r2d2_config.R2D2Config,
        spec: types.EnvironmentSpec,
        dtype: str = "float32",
        seed: int = 0,
        *,
        frame_stack: int,
        burn_in: int = 0,
        evaluating: bool = False,
    ):
        """Creates the agent with all its weights, the target network's equal to the online one's.

        Args:
          config: hyper-parameters.
          spec: of the environment.
          dtype: compute dtype of the torso, "float32" or "bfloat16".
          seed: of the actions that `act` draws.
          frame_stack: K, frames in an observation.
          burn_in: l, rows at the start of an unroll that only carry the core state on.
          evaluating: whether `act` explores as an evaluation does, not as the actors.
        """
        super().__init__()
        self._config = config
        self._num_tasks = spec.num_tasks
        self._evaluating = evaluating
        self._online = _q_network(config, spec, dtype)
        self._target = _q_network(config, spec, dtype)
        self._burn_in = burn_in
        self._random = tf.random.Generator.from_seed(seed)
        self._updates = tf.Variable(0, trainable=False, dtype=tf.int64)
        for network in (self._online, self._target):
            network.create_weights(spec, frame_stack)
        self._copy_to_target()

    @property
    def trainable_variables(self) -> tuple[tf.Variable, ...]:
        """The online network's: what the learner optimises and actors get."""
        return self._online.trainable_variables

    def initial_state(self, batch_size: int) -> Any:
        """The core state before an episode, float32 [B, ...]; () where the agent has no core."""
        return self._online.initial_state(batch_size)

    def act(self, env_output: types.EnvOutput, core_state: Any) -> tuple[types.AgentOutput, Any]:
        """Acts epsilon-greedily, each game of a task with an epsilon of its own.

        Args:
          env_output: [B, ...], with stacked observations.
          core_state: from `initial_state` or the last call.

        Returns:
          The actions int32 [B] with the Q-values float32 [B, A] they were chosen by, and the next
          core state.
        """
        row = tf.nest.map_structure(lambda tensor: tensor[None], env_output)
        q_values, core_state = self._online(row, core_state)
        seed = self._random.make_seeds(1)[:, 0]
        action = epsilon_greedy.sample(q_values[0], self._epsilons(q_values.shape[1]), seed)
        return types.AgentOutput(action, q_values[0]), core_state

    def next_state(self, env_output: types.EnvOutput, core_state: Any) -> Any:
        """The core state after rows that are not acted upon.

        Args:
          env_output: [R, B, ...].
          core_state: before row 0.
        """
        return self._online(env_output, core_state)[1]

    def initial_priorities(self, unroll: types.Unroll) -> tf.Tensor:
        """Priorities of new sequences, from the Q-values that they were acted on: float32 [B].

        Args:
          unroll: [T + 1, B, ...]; observations and core states are not read.
        """
        rows = self._learned_rows(unroll)
        q_values = rows.agent_output.logits
        errors, is_transition = self._errors(rows, q_values, q_values)
        return n_step.sequence_priorities(errors, is_transition, self._config.priority_eta)

    def loss(self, unroll: types.Unroll) -> types.LossOutput:
        """n-step double Q-learning (section 2.3): summed over rows, a mean over sequences.

        The first `burn_in` rows carry both networks' core states on, without gradient.

        Args:
          unroll: [T + 1, B, ...].

        Returns:
          The loss with its metrics, and the sequences' new priorities.
        """
        rows = self._learned_rows(unroll)
        q_values = self._unroll(self._online, unroll, rows)
        q_target = self._unroll(self._target, unroll, rows)
        errors, is_transition = self._errors(rows, q_values, q_target)
        squares = tf.where(is_transition, 0.5 * tf.square(errors), 0.0)
        loss = tf.reduce_mean(unroll.weight * tf.reduce_sum(squares, axis=0))
        metrics = {
            "loss/total": loss,
            "q_learning/q_value": diagnostics.masked_mean(
                tf.reduce_max(q_values[:-1], axis=-1), is_transition
            ),
            "q_learning/absolute_error": diagnostics.masked_mean(tf.abs(errors), is_transition),
            "replay/importance_weight": tf.reduce_mean(unroll.weight),
            **self._staleness(unroll, rows, q_values),
        }
        priorities = n_step.sequence_priorities(errors, is_transition, self._config.priority_eta)
        return types.LossOutput(loss, metrics, priorities)

    def after_update(self) -> None:
        """Copies the weights to the target network once in `target_period` updates."""
        updates = self._updates.assign_add(1)
        due = tf.equal(updates % self._config.target_period, 0)
        tf.cond(due, self._copy_to_target, lambda: None)

    def _copy_to_target(self) -> None:
        for target, online in zip(
            self._target.trainable_variables, self._online.trainable_variables, strict=True
        ):
            target.assign(online)

    def _epsilons(self, batch_size: int) -> tf.Tensor:
        """float32 [B]."""
        if self._evaluating:
            return tf.fill([batch_size], self._config.evaluation_epsilon)
        games = batch_size // self._num_tasks
        ladder = epsilon_greedy.ladder(games, self._config.epsilon_base, self._config.epsilon_alpha)
        return tf.tile(ladder, [self._num_tasks])

    def _learned_rows(self, unroll: types.Unroll) -> types.Unroll:
        """What follows the burn-in."""
        env_output, agent_output = tf.nest.map_structure(
            lambda column: column[self._burn_in :], (unroll.env_output, unroll.agent_output)
        )
        return unroll._replace(env_output=env_output, agent_output=agent_output)

    def _unroll(
        self, network: q_network.QNetwork, unroll: types.Unroll, rows: types.Unroll
    ) -> tf.Tensor:
        """Q-values float32 [T - l + 1, B, A] of the rows after the burn-in."""
        core_state = unroll.core_state
        # Without a state to carry on there is nothing to burn in.
        if self._burn_in and self._config.core != "none":
            before = tf.nest.map_structure(
                lambda column: column[: self._burn_in], unroll.env_output
            )
            core_state = tf.nest.map_structure(tf.stop_gradient, network(before, core_state)[1])
        return network(rows.env_output, core_state)[0]

    def _errors(
        self, rows: types.Unroll, q_values: tf.Tensor, q_target: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Errors of Q(x_t, a_t), float32 [T, B], and where there is a transition, bool [T, B]."""
        config = self._config
        env_output = rows.env_output
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
        taken = tf.gather(q_values[:-1], rows.agent_output.action[:-1], axis=-1, batch_dims=2)
        return targets - taken, is_transition

    def _staleness(
        self, unroll: types.Unroll, rows: types.Unroll, q_values: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Delta Q (section 3) at the first and the last row after the burn-in."""
        if unroll.stored_states == ():
            return {}
        steps = unroll.env_output.reward.shape[0] - 1
        parts = tf.nest.flatten(unroll.stored_states)[0].shape[0] - 1
        metrics = {}
        for name, row, part in (
            ("first", 0, self._burn_in * parts // steps),
            ("last", steps - self._burn_in, parts),
        ):
            state = tf.nest.map_structure(
                lambda states, part=part: states[part], unroll.stored_states
            )
            only = tf.nest.map_structure(
                lambda column, row=row: column[row : row + 1], rows.env_output
            )
            stored = self._online(only, state)[0][0]
            # Where an episode begins, both states are zero.
            inside = tf.logical_not(only.is_first[0])
            metrics[f"staleness/delta_q_{name}"] = diagnostics.masked_mean(
                q_discrepancy.q_discrepancy(q_values, q_values[row], stored), inside
            )
        return metrics


def _q_network(
    config: r2d2_config.R2D2Config, spec: types.EnvironmentSpec, dtype: str
) -> q_network.QNetwork:
    return q_network.QNetwork(
        trunk.Trunk(
            config.torso,
            config.core,
            spec=spec,
            core_size=config.core_size,
            core_memory_span=config.core_memory_span,
            channel_multiplier=config.channel_multiplier,
            center_observation=config.center_observation,
            dtype=dtype,
        ),
        spec.num_actions,
        config.hidden_units,
        reset_at_life_loss=config.reset_at_life_loss,
    )

"""How much of its memory an agent uses: acting with a history of k steps (R2D2, section 5)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from dm_env import specs

from laser_tf import array_function, errors, types
from laser_tf.agents import base as agents_base
from laser_tf.environments import base
from laser_tf.evaluation import episode_player
from laser_tf.replay import frame_stacking


class Agreement(NamedTuple):
    """What the restricted policy and the unrestricted one have in common (R2D2, figure 5)."""

    greedy_match_fraction: float  # of steps at which both have the same greedy action
    max_logit_difference: float  # mean over steps of |max - max| of logits or Q-values


class RestrictedPolicy:
    """An agent's `act` from no more than the last k steps, beside the same with full memory.

    At step t the core's state is zero before o_{t-k+1} and carried over o_{t-k+1}, ..., o_{t-1};
    o_t, the last of the k, is acted on. The row of o_{t-k+1} brings its reward and its previous
    action along, and a stack of frames those before it.

    A second state, never cut, is carried along the same rows: what it would answer to each is
    compared and not played. What actions are compared by are logits or, where an agent learns
    them, Q-values.

    A step costs k + 1 rows' forward pass, since a torso's features are not kept.
    """

    def __init__(
        self,
        agent: agents_base.Agent,
        environment: base.BatchedEnvironment,
        frame_stack: int,
        history_length: int,
    ):
        """Creates the policy of one batch of environments.

        Args:
          agent: with a core; its weights stay as they are.
          environment: N games.
          frame_stack: K.
          history_length: k, agent steps, at least 1.

        Raises:
          ValueError: if the agent has no core, or does not choose among single actions.
        """
        if not isinstance(environment.action_spec(), specs.DiscreteArray):
            raise errors.ConfigError(
                f"--history_length={history_length}: it compares preferences among single actions, "
                "and this agent's are continuous; leave the option out"
            )
        initial_state = agent.initial_state(environment.num_envs)
        if not tf.nest.flatten(initial_state):
            raise errors.ConfigError(
                f"--history_length={history_length}: this agent has no memory to restrict; leave "
                "the option out, or train with a core (--config.agent.core=lstm)"
            )
        self._agent = agent
        self._num_envs = environment.num_envs
        self._length = history_length
        self._stacker = frame_stacking.ObservationStacker(
            environment.num_envs, environment.observation_spec(), frame_stack
        )
        self._history: types.EnvOutput | None = None  # [k, N, ...], newest last
        self._full_state = tf.nest.map_structure(lambda tensor: tensor.numpy(), initial_state)
        self._act = array_function.ArrayFunction(self._act_twice)
        self._is_match: list[np.ndarray] = []  # bool [N] a step
        self._difference: list[np.ndarray] = []  # float32 [N] a step

    def __call__(self, env_output: types.EnvOutput) -> types.AgentOutput:
        """Acts on the next row of all environments; NumPy arrays [N, ...] in and out."""
        stacked = self._stacker.push(env_output.observation, env_output.is_first)
        history = self._push(env_output._replace(observation=stacked))
        output, both, self._full_state = self._act(history, self._full_state)
        restricted, full = both
        self._is_match.append(restricted.argmax(-1) == full.argmax(-1))
        self._difference.append(np.abs(restricted.max(-1) - full.max(-1)))
        return output

    def agreement(self, games: Sequence[episode_player.Game]) -> Agreement:
        """The means over all decisions of games, at least one, that this policy has played.

        A game's last row is no decision: the environment ignores the action taken there.
        """
        decisions = [
            (slice(game.first_step, game.first_step + game.length), game.environment)
            for game in games
        ]
        means = []
        for steps in (self._is_match, self._difference):
            column = np.stack(steps)  # [steps, N]
            means.append(float(np.concatenate([column[where] for where in decisions]).mean()))
        return Agreement(*means)

    def _push(self, row: types.EnvOutput) -> types.EnvOutput:
        """Adds a row [N, ...] to the history, dropping the oldest; returns it, [k, N, ...]."""
        if self._history is None:
            # What a core makes of blank rows is forgotten: the first real one opens an episode.
            self._history = tf.nest.map_structure(
                lambda array: np.zeros((self._length, *array.shape), array.dtype), row
            )

        def shift(column: np.ndarray, newest: np.ndarray) -> None:
            column[:-1] = column[1:]
            column[-1] = newest

        tf.nest.map_structure(shift, self._history, row)
        return self._history

    def _act_twice(
        self, history: types.EnvOutput, full_state: Any
    ) -> tuple[types.AgentOutput, tuple[tf.Tensor, tf.Tensor], Any]:
        """Acts on the history's last row.

        Args:
          history: [k, N, ...].
          full_state: the unrestricted core state before the last row.

        Returns:
          The restricted policy's output, its and the unrestricted one's preferences float32
          [N, A], and the unrestricted core state after the last row.
        """
        row = tf.nest.map_structure(lambda column: column[-1], history)
        state = self._agent.initial_state(self._num_envs)
        if self._length > 1:
            earlier = tf.nest.map_structure(lambda column: column[:-1], history)
            state = self._agent.next_state(earlier, state)
        output, _ = self._agent.act(row, state)
        full_output, full_state = self._agent.act(row, full_state)
        preferences = (
            self._agent.action_preferences(output),
            self._agent.action_preferences(full_output),
        )
        return output, preferences, full_state

"""Acting with a history of k steps, to measure the use of memory (R2D2, section 5)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from dm_env import specs

from laser_tf import array_function, errors, observations, types
from laser_tf.agents import base as agents_base
from laser_tf.environments import base
from laser_tf.evaluation import episode_runner
from laser_tf.replay import frame_stacking


class RestrictedPolicy:
    """Acts from the last k steps, and compares with the same agent with full memory.

    At step t the core's state is zero before o_{t-k+1} and is carried over o_{t-k+1}, ...,
    o_{t-1}. The action is that of o_t, the last of the k steps. The time step of o_{t-k+1} includes
    its reward and its previous action, and a stack of frames includes the earlier frames.

    A second state, which is never cut, is carried over the same time steps. Only its preferences
    (logits, or Q-values if the agent learns them) are compared.

    A step costs the forward pass of k + 1 time steps, since the torso's features are not kept.
    """

    def __init__(
        self,
        agent: agents_base.Agent,
        environment: base.BatchedEnvironment,
        frame_stack: int,
        history_length: int,
    ):
        """Creates the policy of N environments with K stacked frames and k = `history_length`.

        Raises ConfigError if the agent has no core, or its action is not one integer.
        """
        action = environment.action_spec()
        if not isinstance(action, specs.DiscreteArray):
            raise errors.ConfigError(
                f"--history_length must be 0 for {observations.describe_action(action)}, got "
                f"{history_length}. It needs one discrete action; leave the option out."
            )
        initial_state = agent.initial_state(environment.num_envs)
        if not tf.nest.flatten(initial_state):
            raise errors.ConfigError(
                f"--history_length must be 0 for an agent without a core, got {history_length}. "
                "Leave the option out, or train with --config.agent.core=lstm."
            )
        self._agent = agent
        self._num_envs = environment.num_envs
        self._length = history_length
        self._stacker = frame_stacking.FrameStacker(
            environment.num_envs, environment.observation_spec(), frame_stack
        )
        self._history: types.EnvOutput | None = None  # [k, N, ...], newest last.
        self._full_state = tf.nest.map_structure(lambda tensor: tensor.numpy(), initial_state)
        self._act = array_function.ArrayFunction(self._act_twice)
        self._is_match: list[np.ndarray] = []  # bool [N] for each step.
        self._difference: list[np.ndarray] = []  # float32 [N] for each step.

    def __call__(self, env_output: types.EnvOutput) -> types.AgentOutput:
        """Acts on the next time step of all environments; NumPy arrays [N, ...] in and out."""
        stacked = self._stacker.push(env_output.observation, env_output.is_first)
        newest = env_output._replace(observation=stacked)
        if self._history is None:
            # The first real time step opens an episode, which resets the core after the zeros.
            self._history = tf.nest.map_structure(
                lambda array: np.zeros((self._length, *array.shape), array.dtype), newest
            )
        self._history = tf.nest.map_structure(
            lambda column, array: np.concatenate([column[1:], array[None]]), self._history, newest
        )
        output, preferences, self._full_state = self._act(self._history, self._full_state)
        restricted, full = preferences
        self._is_match.append(restricted.argmax(-1) == full.argmax(-1))
        self._difference.append(np.abs(restricted.max(-1) - full.max(-1)))
        return output

    def agreement(self, episodes: Sequence[episode_runner.Episode]) -> dict[str, float]:
        """Returns means over the decisions of episodes that this policy has run (R2D2, figure 5).

        The last time step of an episode is no decision: the environment ignores its action.
        `greedy_match_fraction` is the fraction of steps at which both policies have the same greedy
        action; `max_logit_difference` is the mean of |max - max| of logits or Q-values.
        """
        decisions = [
            (slice(episode.first_step, episode.first_step + episode.length), episode.environment)
            for episode in episodes
        ]

        def mean(values: list[np.ndarray]) -> float:
            column = np.stack(values)  # [steps, N]
            return float(np.concatenate([column[where] for where in decisions]).mean())

        return {
            "history_length": self._length,
            "greedy_match_fraction": mean(self._is_match),
            "max_logit_difference": mean(self._difference),
        }

    def _act_twice(
        self, history: types.EnvOutput, full_state: Any
    ) -> tuple[types.AgentOutput, tuple[tf.Tensor, ...], Any]:
        """Acts on the last time step of the history [k, N, ...].

        Returns the restricted policy's output, the preferences float32 [N, A] of the restricted and
        the unrestricted policy, and the unrestricted core state after the last time step.
        """
        newest = tf.nest.map_structure(lambda column: column[-1], history)
        state = self._agent.initial_state(self._num_envs)
        if self._length > 1:
            earlier = tf.nest.map_structure(lambda column: column[:-1], history)
            state = self._agent.next_state(earlier, state)
        output, _ = self._agent.act(newest, state)
        full_output, full_state = self._agent.act(newest, full_state)
        preferences = tuple(map(self._agent.action_preferences, (output, full_output)))
        return output, preferences, full_state

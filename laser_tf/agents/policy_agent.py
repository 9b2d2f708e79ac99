"""What agents have in common that act by drawing from a policy: how they act, and their entropy."""

import abc
from typing import Any

import tensorflow as tf

from laser_tf import types
from laser_tf.agents import agent_config, base
from laser_tf.distributions import base as distributions_base


class PolicyAgent(base.Agent):
    """Stores the parameters of the policy that it acted by, as the behaviour policy's."""

    def __init__(
        self, distribution: distributions_base.Distribution, *, entropy_cost: float, seed: int
    ):
        """Prepares acting.

        Args:
          distribution: of the actions.
          entropy_cost: at the run's start.
          seed: of the actions that `act` draws.
        """
        super().__init__()
        self._distribution = distribution
        self._random = tf.random.Generator.from_seed(seed)
        # A variable, since a population's trainer changes it while the run goes on.
        self.entropy_cost = tf.Variable(entropy_cost, trainable=False, dtype=tf.float32)

    @abc.abstractmethod
    def _policy_outputs(
        self, env_output: types.EnvOutput, core_state: Any
    ) -> tuple[tf.Tensor, Any]:
        """Steps [R, B, ...] -> what the distribution makes parameters of, and the next state."""

    @property
    def hyperparameters(self) -> dict[str, tf.Variable]:
        """The entropy cost."""
        return {agent_config.ENTROPY_COST: self.entropy_cost}

    def act(
        self, env_output: types.EnvOutput, core_state: Any, seed: tf.Tensor | None = None
    ) -> tuple[types.AgentOutput, Any]:
        """Samples actions from the policy, and keeps its parameters as the behaviour policy's."""
        step = tf.nest.map_structure(lambda tensor: tensor[None], env_output)
        outputs, core_state = self._policy_outputs(step, core_state)
        parameters = self._distribution.parameters(outputs[0])
        seed = self._random.make_seeds(1)[:, 0] if seed is None else seed
        draw = self._distribution.sample(parameters, seed)
        return types.AgentOutput(draw.action, parameters, draw.latent), core_state

    def greedy_action(self, agent_output: types.AgentOutput) -> tf.Tensor:
        """The policy's mode."""
        return self._distribution.mode(agent_output.policy)

    def action_preferences(self, agent_output: types.AgentOutput) -> tf.Tensor:
        """The logits."""
        if tf.nest.is_nested(agent_output.policy):  # continuous
            return super().action_preferences(agent_output)
        return agent_output.policy

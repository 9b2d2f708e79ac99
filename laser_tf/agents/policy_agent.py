"""Base class of agents that sample actions from a policy."""

import abc
from typing import Any

import tensorflow as tf

from laser_tf import types
from laser_tf.agents import agent_config, base
from laser_tf.distributions import base as distributions_base


class PolicyAgent(base.Agent):
    """Samples actions and stores the policy's parameters as those of the behaviour policy."""

    def __init__(
        self, distribution: distributions_base.Distribution, *, entropy_cost: float, seed: int
    ):
        super().__init__()
        self._distribution = distribution
        self._random = tf.random.Generator.from_seed(seed)
        # A variable, because population based training changes the cost during a run.
        self.entropy_cost = tf.Variable(entropy_cost, trainable=False, dtype=tf.float32)

    @abc.abstractmethod
    def _policy_outputs(
        self, env_output: types.EnvOutput, core_state: Any
    ) -> tuple[tf.Tensor, Any]:
        """Computes the inputs of the distribution, [T, B, P], and the next core state."""

    @property
    def hyperparameters(self) -> dict[str, tf.Variable]:
        """Returns the entropy cost."""
        return {agent_config.ENTROPY_COST: self.entropy_cost}

    def act(
        self, env_output: types.EnvOutput, core_state: Any, seed: tf.Tensor | None = None
    ) -> tuple[types.AgentOutput, Any]:
        """Samples actions and returns them with the policy's parameters, see `base.Agent`."""
        step = tf.nest.map_structure(lambda tensor: tensor[None], env_output)
        outputs, core_state = self._policy_outputs(step, core_state)
        parameters = self._distribution.parameters(outputs[0])
        seed = self._random.make_seeds(1)[:, 0] if seed is None else seed
        sample = self._distribution.sample(parameters, seed)
        return types.AgentOutput(sample.action, parameters, sample.latent), core_state

    def greedy_action(self, agent_output: types.AgentOutput) -> tf.Tensor:
        """Returns the mode of the policy."""
        return self._distribution.mode(agent_output.policy)

    def action_preferences(self, agent_output: types.AgentOutput) -> tf.Tensor:
        """Returns the logits of discrete actions, see `base.Agent`."""
        if tf.nest.is_nested(agent_output.policy):  # Continuous actions.
            return super().action_preferences(agent_output)
        return agent_output.policy

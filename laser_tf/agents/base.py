"""What an agent is: the contract between every agent and the actors, replay and learner.

A new agent is a file with a subclass of `Agent`, a file with its `Config` and a line in
`registry.py`. Nothing else knows agents by name.
"""

import abc
import dataclasses
from typing import Any

import tensorflow as tf

from laser_tf import types


@dataclasses.dataclass(frozen=True)
class Context:
    """What an agent is built for, beside its own hyper-parameters."""

    spec: types.EnvironmentSpec  # as the agent sees it: images with stacked frames
    frame_stack: int = 1  # K, frames in each image of `spec`
    dtype: str = "float32"  # compute dtype of the torso, "float32" or "bfloat16"
    seed: int = 0  # of the actions that `act` draws
    burn_in: int = 0  # steps at the start of an unroll that only carry the core state on
    evaluating: bool = False  # whether `act` explores as an evaluation does, not as actors do
    actor: int = 0  # index of the actor that acts, of `actors`
    actors: int = 1  # that explore beside each other, each with as many environments


class Agent(tf.Module, abc.ABC):
    """Acts, and has a loss; all its variables exist once it is made.

    `laser_tf.types` holds the time convention of everything that it reads.
    """

    @abc.abstractmethod
    def initial_state(self, batch_size: int | tf.Tensor) -> Any:
        """The core state before an episode, nest of [B, ...]; () where the agent has no core."""

    @abc.abstractmethod
    def act(
        self, env_output: types.EnvOutput, core_state: Any, seed: tf.Tensor | None = None
    ) -> tuple[types.AgentOutput, Any]:
        """Chooses actions.

        Args:
          env_output: [B, ...], with stacked frames; B need not be static.
          core_state: from `initial_state` or the last call.
          seed: integers [2] that alone decide the draw, as in a policy that is exported; None: the
            agent's own random generator goes on.

        Returns:
          What is sent to the environments and stored for the loss, [B, ...], and the next core
          state. Whatever the loss needs later is stored by being in this `AgentOutput`.
        """

    @abc.abstractmethod
    def greedy_action(self, agent_output: types.AgentOutput) -> tf.Tensor:
        """The action that the agent takes for the best one where it answered `agent_output`."""

    @abc.abstractmethod
    def next_state(self, env_output: types.EnvOutput, core_state: Any) -> Any:
        """The core state after steps [R, B, ...] that are not acted upon."""

    @abc.abstractmethod
    def loss(self, unroll: types.Unroll) -> types.LossOutput:
        """The loss of a batch of unrolls [T + 1, B, ...], whose gradient the learner descends.

        Several learners call it with a share of the joint batch each and descend the sum: what it
        takes a mean of, or moments, goes by way of `ops.joint_batch`.
        """

    def after_update(self) -> None:  # noqa: B027 (most agents have nothing to do)
        """Called after each gradient step: for target networks and averages of policies."""

    def initial_priorities(self, unroll: types.Unroll) -> tf.Tensor:
        """Priorities of new experience from what it was acted on: float32 [B], above 0.

        Args:
          unroll: [T + 1, B, ...]; observations and core states are not there.
        """
        return tf.ones_like(unroll.importance_weight)

    def action_preferences(self, agent_output: types.AgentOutput) -> tf.Tensor:
        """What discrete actions are compared by, logits or Q-values: float32 [..., A].

        Raises:
          ValueError: for an agent of continuous actions.
        """
        raise ValueError(f"{type(self).__name__} has no preferences among single actions here")

    @property
    def hyperparameters(self) -> dict[str, tf.Variable]:
        """What may change while the run goes on, by the config's names; part of checkpoints."""
        return {}

    @property
    def acting_variables(self) -> tuple[tf.Variable, ...]:
        """What `act` reads and the learner moves: what actors get copies of."""
        return self.trainable_variables

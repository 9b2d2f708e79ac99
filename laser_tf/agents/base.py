"""Contract between agents and the actors, replay and learner; see `registry` for new agents."""

import abc
import dataclasses
from typing import Any, ClassVar

import tensorflow as tf

from laser_tf import errors, observations, types
from laser_tf.agents import agent_config
from laser_tf.distributions import base as distributions_base
from laser_tf.distributions import categorical
from laser_tf.ops import diagnostics, joint_batch


@dataclasses.dataclass(frozen=True)
class AgentContext:
    """Settings of an agent other than hyper-parameters."""

    spec: types.EnvironmentSpec  # environment spec; images have stacked frames
    frame_stack: int = 1  # K, frames in each image of `spec`
    dtype: str = "float32"  # compute dtype of the torso, "float32" or "bfloat16"
    seed: int = 0  # seed of the actions that `act` samples
    burn_in: int = 0  # steps at the start of an unroll that only update the core state
    is_evaluating: bool = False  # True: `act` explores as in evaluation; False: as in training
    actor_index: int = 0  # index of this actor, below `num_actors`
    num_actors: int = 1  # number of actors; each has the same number of environments


class Agent(tf.Module, abc.ABC):
    """Selects actions and computes a loss; `laser_tf.types` defines the time convention.

    A subclass is created from its configuration and an `AgentContext`, or raises ConfigError if
    the configuration does not fit the environment.
    """

    # Configuration of an agent outside this package; `registry` has those of the others.
    config_class: ClassVar[type[agent_config.AgentConfig]] = agent_config.AgentConfig

    def create_variables(self, spec: types.EnvironmentSpec, steps: int, parts: int) -> None:
        """Creates the variables that the constructor leaves to the first calls of networks.

        `act` and `loss` are traced, not executed, so that existing variables keep their values.
        The unroll has T = `steps`, and `Unroll.stored_states` have S = `parts`, 0 for none.

        Raises:
          ConfigError: If there is no trainable variable or `loss` returns another type.
        """
        returned: list[Any] = []

        def trace() -> None:
            blank = tf.nest.map_structure(tf.constant, observations.padding_steps(spec, (1,)))
            state = self.initial_state(1)
            agent_output, _ = self.act(blank, state)

            def repeated(nest: Any, times: int) -> Any:
                return tf.nest.map_structure(lambda leaf: tf.stack([leaf] * times), nest)

            unroll = types.Unroll(
                repeated(blank, steps + 1),
                repeated(agent_output, steps + 1),
                state,
                task=tf.zeros([1], tf.int32),
                is_online=tf.ones([1], tf.bool),
                is_own=tf.ones([1], tf.bool),
                importance_weight=tf.ones([1]),
                stored_states=repeated(state, parts + 1) if parts else (),
            )
            returned.append(self.loss(unroll))

        strategy = tf.distribute.get_strategy()
        tf.function(lambda: strategy.run(trace), autograph=False).get_concrete_function()
        path = f"{type(self).__module__}:{type(self).__name__}"
        if not isinstance(returned[-1], types.LossOutput):
            raise errors.ConfigError(
                f"agent.name must be an agent whose loss returns types.LossOutput, got {path}, "
                f"whose loss returns {type(returned[-1]).__name__}. Return LossOutput(loss, "
                "metrics, priorities)."
            )
        if not self.trainable_variables:
            raise errors.ConfigError(
                f"agent.name must be an agent with trainable variables, got {path}. Store "
                "tf.Module or Keras layers as attributes."
            )

    @property
    @abc.abstractmethod
    def _acting_network(self) -> Any:
        """Returns the network of `act`, with the methods of `trunk.Trunk`.

        It maps an `EnvOutput`, [T, B, ...], and a core state to outputs and the next core state.
        """

    @property
    def _second_network(self) -> Any:
        """Returns the target or average network, which reads the same inputs; None without one."""
        return None

    def initial_state(self, batch_size: int | tf.Tensor) -> Any:
        """Returns the core state before an episode, nest of [B, ...]; () without a core."""
        return self._acting_network.initial_state(batch_size)

    @abc.abstractmethod
    def act(
        self, env_output: types.EnvOutput, core_state: Any, seed: tf.Tensor | None = None
    ) -> tuple[types.AgentOutput, Any]:
        """Selects actions.

        Args:
          env_output: Environment output with stacked frames, [B, ...]; B need not be static.
          core_state: Core state from `initial_state` or the previous call.
          seed: Seed of the sampled actions, integers [2], as an exported policy passes it; None
            uses the agent's random generator.

        Returns:
          Agent output, [B, ...], with everything that the loss needs, because replay stores it, and
          the next core state.
        """

    @abc.abstractmethod
    def greedy_action(self, agent_output: types.AgentOutput) -> tf.Tensor:
        """Returns the action that the agent considers best, given its output of `act`."""

    def next_state(self, env_output: types.EnvOutput, core_state: Any) -> Any:
        """Returns the core state after steps [T, B, ...] without selecting actions."""
        return self._acting_network(env_output, core_state)[-1]

    def update_normalisers(self, env_output: types.EnvOutput) -> None:
        """Updates the moments of observations [T + 1, B, ...]; called before `loss`."""
        self._acting_network.update_normalisers(env_output)
        if self._second_network is not None:
            pairs = zip(self._second_network.moments, self._acting_network.moments, strict=True)
            for second, moment in pairs:
                second.assign(moment)

    @abc.abstractmethod
    def loss(self, unroll: types.Unroll) -> types.LossOutput:
        """Computes loss, metrics and priorities of a batch of unrolls [T + 1, B, ...].

        Each of several replicas calls this method with a part of the joint batch and minimises the
        sum of the losses. Means and moments must therefore use `ops.joint_batch`.
        """

    def after_update(self) -> None:  # noqa: B027 (most agents have nothing to do)
        """Updates target networks and average policies after each gradient step."""

    def initial_priorities(self, unroll: types.Unroll) -> tf.Tensor:
        """Returns initial priorities of new experience, float32 [B], above 0.

        The unroll [T + 1, B, ...] has no observations and core states.
        """
        return tf.ones_like(unroll.importance_weight)

    def action_preferences(self, agent_output: types.AgentOutput) -> tf.Tensor:
        """Returns logits or Q-values, float32 [..., A]; raises ValueError unless discrete."""
        raise ValueError(
            f"an action must be one integer for action preferences, got other actions of "
            f"{type(self).__name__}. Use greedy_action."
        )

    @property
    def hyperparameters(self) -> dict[str, tf.Variable]:
        """Returns the hyper-parameters that may change during a run, by config key; saved."""
        return {}

    @property
    def acting_variables(self) -> tuple[tf.Variable, ...]:
        """Returns the variables that actors receive: by default all except hyper-parameters."""
        excluded = {id(variable) for variable in self.hyperparameters.values()}
        return tuple(variable for variable in self.variables if id(variable) not in excluded)


class PolicyAgent(Agent):
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

    def _policy_metrics(
        self, policy: Any, kl: tf.Tensor, is_transition: tf.Tensor, unroll: types.Unroll
    ) -> dict[str, joint_batch.Mean]:
        """Returns means of the entropy of pi and of KL(pi || mu), [T, B], by origin of entries."""
        online, replayed = is_transition & unroll.is_online, is_transition & ~unroll.is_online
        own, foreign = replayed & unroll.is_own, replayed & ~unroll.is_own
        mean = diagnostics.masked_mean
        return {
            "policy/entropy": mean(self._distribution.entropy(policy), is_transition),
            "policy/kl_online": mean(kl, online),
            "policy/kl_replay": mean(kl, replayed),
            "policy/kl_own": mean(kl, own),
            "policy/kl_foreign": mean(kl, foreign),
            "replay/foreign_fraction": mean(foreign, replayed),
        }

    @property
    def hyperparameters(self) -> dict[str, tf.Variable]:
        """Returns the entropy cost."""
        return {agent_config.ENTROPY_COST: self.entropy_cost}

    def act(
        self, env_output: types.EnvOutput, core_state: Any, seed: tf.Tensor | None = None
    ) -> tuple[types.AgentOutput, Any]:
        """Samples actions and returns them with the policy's parameters."""
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
        """Returns the logits of discrete actions."""
        if isinstance(self._distribution, categorical.Categorical):
            return agent_output.policy
        return super().action_preferences(agent_output)

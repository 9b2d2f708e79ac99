"""Base class of ACER and its baselines: a policy and the moving average of its weights."""

import abc
from typing import Any, NamedTuple

import tensorflow as tf

from laser_tf import observations, types
from laser_tf.agents import acer_config, base
from laser_tf.distributions import factory
from laser_tf.networks import trunk_network
from laser_tf.ops import diagnostics, gradient_constraint, masking, reward_clipping


class Experience(NamedTuple):
    """Inputs of the losses, computed from an unroll."""

    features: tf.Tensor  # float32 [T + 1, B, F]; differentiable
    outputs: tf.Tensor  # outputs of the policy network, float32 [T + 1, B, P]; no gradient
    policy: Any  # parameters of pi at x_0 .. x_{T-1}; differentiable
    fixed_policy: Any  # same as `policy`, without gradient
    score: tf.Tensor  # score of the actions taken, float32 [T, B, S]; no gradient
    behaviour: types.AgentOutput  # actions and parameters of mu at x_0 .. x_{T-1}
    log_rhos: tf.Tensor  # log pi(a_t|x_t) / mu(a_t|x_t), float32 [T, B]; no gradient
    rewards: tf.Tensor  # reward that arrived with x_{t+1}, float32 [T, B]
    discounts: tf.Tensor  # gamma times the discount that arrived with x_{t+1}, float32 [T, B]
    is_transition: tf.Tensor  # bool [T, B]; false for the step between two episodes


class AveragePolicyAgent(base.PolicyAgent):
    """Actor-critic with a trust region around an average policy; subclasses define the gradient.

    Policy and average policy start an unroll from the same stored core states.
    """

    def __init__(self, config: acer_config.AveragePolicyConfig, context: base.AgentContext) -> None:
        spec = context.spec
        config.check_actions(spec.action)
        distribution, self._statistics = factory.make_with_statistics(
            spec.action, config.statistics, config.policy_std
        )
        super().__init__(distribution, entropy_cost=config.entropy_cost, seed=context.seed)
        self._config = config
        self._policy, self._average = (
            trunk_network.PolicyNetwork(
                config,
                spec,
                context.dtype,
                output_size=self._distribution.output_size,
                output_scale=self._distribution.output_scale,
            )
            for _ in range(2)
        )
        blank = tf.nest.map_structure(tf.constant, observations.padding_steps(spec, (1, 1)))
        for network in (self._policy, self._average):
            features, _, _ = network(blank, network.initial_state(1))  # Creates the weights.
        self._critic = self._create_critic(spec, features)
        self._update_average(0.0)

    @abc.abstractmethod
    def _create_critic(self, spec: types.EnvironmentSpec, features: tf.Tensor) -> Any:
        """Creates the critic with its weights, given example features, float32 [1, 1, F]."""

    @property
    def trainable_variables(self) -> tuple[tf.Variable, ...]:
        """Returns the weights of policy and critic; the average policy is not trained."""
        return (*self._policy.trainable_variables, *self._critic.trainable_variables)

    @property
    def acting_variables(self) -> tuple[tf.Variable, ...]:
        """Returns the policy's weights and the moments that normalise observations."""
        return (*self._policy.trainable_variables, *self._policy.moments)

    @property
    def _acting_network(self) -> Any:
        return self._policy

    @property
    def _second_network(self) -> Any:
        return self._average

    def _policy_outputs(
        self, env_output: types.EnvOutput, core_state: Any
    ) -> tuple[tf.Tensor, Any]:
        _, outputs, core_state = self._policy(env_output, core_state)
        return outputs, core_state

    def after_update(self) -> None:
        """Updates theta_average <- alpha theta_average + (1 - alpha) theta   (section 3.3)."""
        self._update_average(self._config.average_decay)

    def _update_average(self, decay: float) -> None:
        for average, variable in zip(
            self._average.trainable_variables, self._policy.trainable_variables, strict=True
        ):
            average.assign(decay * average + (1 - decay) * variable)

    def _compute_experience(self, unroll: types.Unroll) -> Experience:
        """Evaluates the policy on an unroll [T + 1, B, ...]."""
        config, env_output = self._config, unroll.env_output
        features, outputs, _ = self._policy(env_output, unroll.core_state)
        behaviour = tf.nest.map_structure(lambda leaf: leaf[:-1], unroll.agent_output)
        is_transition = tf.logical_not(env_output.is_first[1:])
        # Masked outputs may be invalid, so they must not reach the gradient.
        policy = self._distribution.parameters(masking.keep(is_transition, outputs[:-1]))
        fixed_policy = tf.nest.map_structure(tf.stop_gradient, policy)
        log_rhos = self._distribution.log_importance_ratio(
            fixed_policy, behaviour.policy, behaviour.action, behaviour.extras
        )
        rewards = reward_clipping.REWARD_CLIPS[config.reward_clip](env_output.reward[1:])
        return Experience(
            features,
            tf.stop_gradient(outputs),
            policy,
            fixed_policy,
            self._statistics.score(fixed_policy, behaviour.action, behaviour.extras),
            behaviour,
            tf.where(is_transition, log_rhos, 0.0),
            config.reward_scale * rewards,
            config.discount * env_output.discount[1:],
            is_transition,
        )

    def _policy_loss(
        self, unroll: types.Unroll, experience: Experience, gradient: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, Any]]:
        """Computes a loss whose gradient is the constrained policy gradient, and metrics.

        `gradient` is the ascent direction of the statistics, float32 [T, B, S]; it is ignored
        outside of transitions. The loss propagates it back through the statistics.
        """
        config, is_transition = self._config, experience.is_transition
        statistics, policy = self._statistics, experience.fixed_policy
        _, outputs, _ = self._average(unroll.env_output, unroll.core_state)
        average = self._distribution.parameters(masking.keep(is_transition, outputs[:-1]))
        # The entropy gradient is part of the policy gradient, so the constraint applies to it, too.
        gradient = masking.keep(
            is_transition,
            unroll.importance_weight[:, None]
            * (gradient + self.entropy_cost * statistics.entropy_gradient(policy)),
        )
        divergence_gradient = statistics.divergence_gradient(average, policy)
        direction = gradient_constraint.constrain(gradient, divergence_gradient, config.delta)
        is_constrained = tf.reduce_any(direction != gradient, axis=-1)
        if not config.trust_region:
            direction = gradient
        loss = gradient_constraint.ascent_loss(statistics.compute(experience.policy), direction)
        kl = self._distribution.kl_divergence(average, policy)
        kl_behaviour = self._distribution.kl_divergence(policy, experience.behaviour.policy)
        mean = diagnostics.masked_mean
        metrics = {
            "trust_region/kl_average": mean(kl, is_transition),
            "trust_region/constrained_fraction": mean(is_constrained, is_transition),
            **self._policy_metrics(policy, kl_behaviour, is_transition, unroll),
        }
        return loss, metrics

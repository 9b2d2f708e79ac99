"""The part that ACER and its baselines share: a policy, and an average of its past beside it."""

import abc
from typing import Any, NamedTuple

import tensorflow as tf

from laser_tf import observations, types
from laser_tf.agents import average_policy_config, base, policy_agent
from laser_tf.distributions import factory
from laser_tf.networks import policy_network
from laser_tf.ops import diagnostics, gradient_constraint, joint_batch, masking, reward_clipping


class Experience(NamedTuple):
    """An unroll as a loss of this family reads it."""

    features: tf.Tensor  # float32 [T + 1, B, F]; receive the gradient
    outputs: tf.Tensor  # float32 [T + 1, B, P], the policy's; no gradient flows into them
    policy: Any  # parameters of pi at x_0 .. x_{T-1}; receive the gradient
    fixed_policy: Any  # the same; no gradient flows into them
    score: tf.Tensor  # float32 [T, B, S], of the actions that were taken; no gradient
    acted: types.AgentOutput  # at x_0 .. x_{T-1}, with mu's parameters
    log_rhos: tf.Tensor  # float32 [T, B], log pi(a_t|x_t) / mu(a_t|x_t); no gradient
    rewards: tf.Tensor  # float32 [T, B], that arrived with x_{t+1}
    discounts: tf.Tensor  # float32 [T, B], gamma times the discount that arrived with x_{t+1}
    is_transition: tf.Tensor  # bool [T, B], false for the step between two episodes


class AveragePolicyAgent(policy_agent.PolicyAgent):
    """Acts by a policy; subclasses say what direction it should move in.

    The average policy starts from the core states that acting stored, as the policy itself does.
    """

    def __init__(
        self, config: average_policy_config.AveragePolicyConfig, context: base.Context
    ) -> None:
        """Creates policy and average policy with all their weights, the same.

        Raises:
          ValueError: for an option that does not fit the environment's observations or actions.
        """
        spec = context.spec
        config.check_actions(spec.action)
        distribution, self._statistics = factory.make_with_statistics(
            spec.action, config.statistics, config.policy_std
        )
        super().__init__(distribution, entropy_cost=config.entropy_cost, seed=context.seed)
        self._config = config
        self._policy, self._average = (
            policy_network.PolicyNetwork(
                config,
                spec,
                context.dtype,
                output_size=self._distribution.output_size,
                output_scale=self._distribution.output_scale,
            )
            for _ in range(2)
        )
        blank = tf.nest.map_structure(tf.constant, observations.blank(spec, (1, 1)))
        for network in (self._policy, self._average):
            features, _, _ = network(blank, network.initial_state(1))  # creates its weights
        self._create_critic(spec, features)
        self._move_average(0.0)

    @abc.abstractmethod
    def _create_critic(self, spec: types.EnvironmentSpec, features: tf.Tensor) -> None:
        """Creates the critic with its weights; features are [1, 1, F]."""

    @property
    @abc.abstractmethod
    def _critic_variables(self) -> tuple[tf.Variable, ...]:
        """What the critic learns beside the policy's trunk."""

    @property
    def trainable_variables(self) -> tuple[tf.Variable, ...]:
        """The policy's and the critic's; the average policy only follows."""
        return (*self._policy.trainable_variables, *self._critic_variables)

    @property
    def acting_variables(self) -> tuple[tf.Variable, ...]:
        """The policy's weights, and the moments that observations are normalised by."""
        return (*self._policy.trainable_variables, *self._policy.moments)

    def initial_state(self, batch_size: int | tf.Tensor) -> Any:
        """See `base.Agent`: float32 [B, ...]."""
        return self._policy.initial_state(batch_size)

    def next_state(self, env_output: types.EnvOutput, core_state: Any) -> Any:
        """See `base.Agent`."""
        return self._policy(env_output, core_state)[2]

    def _policy_outputs(
        self, env_output: types.EnvOutput, core_state: Any
    ) -> tuple[tf.Tensor, Any]:
        _, outputs, core_state = self._policy(env_output, core_state)
        return outputs, core_state

    def after_update(self) -> None:
        """theta_average <- alpha theta_average + (1 - alpha) theta   (section 3.3)."""
        self._move_average(self._config.average_decay)

    def _move_average(self, decay: float) -> None:
        for average, variable in zip(
            self._average.trainable_variables, self._policy.trainable_variables, strict=True
        ):
            average.assign(decay * average + (1 - decay) * variable)
        # Moments are no weights: an average that reads other inputs would be another policy.
        for average, moment in zip(self._average.moments, self._policy.moments, strict=True):
            average.assign(moment)

    def _read(self, unroll: types.Unroll) -> Experience:
        """Runs the policy over an unroll [T + 1, B, ...]."""
        config, env_output = self._config, unroll.env_output
        self._policy.observe(env_output)
        features, outputs, _ = self._policy(env_output, unroll.core_state)
        acted = tf.nest.map_structure(lambda leaf: leaf[:-1], unroll.agent_output)
        is_transition = tf.logical_not(env_output.is_first[1:])
        # What outputs are where there is no transition must not reach the gradient.
        policy = self._distribution.parameters(masking.keep(is_transition, outputs[:-1]))
        fixed_policy = tf.nest.map_structure(tf.stop_gradient, policy)
        log_rhos = self._distribution.log_importance_ratio(
            fixed_policy, acted.policy, acted.action, acted.extras
        )
        rewards = reward_clipping.REWARD_CLIPS[config.reward_clip](env_output.reward[1:])
        return Experience(
            features,
            tf.stop_gradient(outputs),
            policy,
            fixed_policy,
            self._statistics.score(fixed_policy, acted.action, acted.extras),
            acted,
            tf.where(is_transition, log_rhos, 0.0),
            config.reward_scale * rewards,
            config.discount * env_output.discount[1:],
            is_transition,
        )

    def _policy_loss(
        self, unroll: types.Unroll, experience: Experience, gradient: tf.Tensor
    ) -> tuple[tf.Tensor, dict[str, Any]]:
        """The scalar whose gradient is the constrained one, propagated back through the statistics.

        Args:
          unroll: [T + 1, B, ...].
          experience: of the unroll.
          gradient: float32 [T, B, S], the policy gradient with respect to the statistics, of
            ascent; what it holds where there is no transition is not read.

        Returns:
          The loss, summed over T and B, and metrics.
        """
        config, is_transition = self._config, experience.is_transition
        statistics, policy = self._statistics, experience.fixed_policy
        _, outputs, _ = self._average(unroll.env_output, unroll.core_state)
        average = self._distribution.parameters(masking.keep(is_transition, outputs[:-1]))
        # The entropy's part is of the policy's update, so it is constrained with it.
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
        loss = gradient_constraint.ascent_loss(statistics.of(experience.policy), direction)
        kl = self._distribution.kl_divergence(average, policy)
        metrics = {
            "trust_region/kl_average": diagnostics.masked_mean(kl, is_transition),
            "trust_region/constrained_fraction": diagnostics.masked_mean(
                tf.cast(is_constrained, tf.float32), is_transition
            ),
            **self._divergences(unroll, experience),
        }
        return loss, metrics

    def _divergences(
        self, unroll: types.Unroll, experience: Experience
    ) -> dict[str, joint_batch.Mean]:
        policy = experience.fixed_policy
        return diagnostics.divergences(
            self._distribution.entropy(policy),
            self._distribution.kl_divergence(policy, experience.acted.policy),
            is_transition=experience.is_transition,
            is_online=unroll.is_online,
            is_own=unroll.is_own,
        )

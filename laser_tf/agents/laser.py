"""LASER: off-policy actor-critic with shared experience replay (Schmitt et al. 2020).

With `relevance="none"` and no replay this is IMPALA (Espeholt et al. 2018), LASER's on-policy
baseline. Feed-forward or, with a core, recurrent; actions are discrete or continuous.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from laser_tf import observations, types
from laser_tf.agents import base, laser_config, pixel_control_task, policy_agent, state_values
from laser_tf.distributions import factory
from laser_tf.networks import heads, trunk
from laser_tf.ops import (
    diagnostics,
    joint_batch,
    masking,
    policy_gradient,
    reward_clipping,
    trust_region,
    vtrace,
)


class _Learned(NamedTuple):
    """What a batch teaches, [T, B, ...] each."""

    target: Any  # the target policy's parameters; no gradient flows into them
    targets: vtrace.VTraceOutput
    log_rhos: tf.Tensor  # float32
    kl: tf.Tensor  # float32, KL(pi || mu)
    is_transition: tf.Tensor  # bool, false for the step between two episodes
    trusted: tf.Tensor  # bool, the transitions that count


class Laser(policy_agent.PolicyAgent):
    """The agent; see `base.Agent` for what is not described here."""

    def __init__(self, config: laser_config.LaserConfig, context: base.Context):
        """Creates the agent with all its weights.

        Raises:
          ValueError: for an option that does not fit the environment's observations or actions.
        """
        spec, dtype = context.spec, context.dtype
        config.check_actions(spec.action)
        super().__init__(
            factory.make(spec.action, config.continuous_policy, config.initial_std),
            entropy_cost=config.entropy_cost,
            seed=context.seed,
        )
        self._config = config
        self._trunk = trunk.Trunk(config, spec, dtype)
        self._policy_head = heads.dense(
            self._distribution.output_size, self._distribution.output_scale
        )
        # No network sees the task; PopArt alone keeps apart what is learnt of each.
        self._state_values = (
            state_values.PopArtStateValues(spec.num_tasks, config.popart_step)
            if config.popart
            else state_values.StateValues()
        )
        self._auxiliary_tasks = (
            {
                "pixel_control": pixel_control_task.PixelControlTask(
                    spec,
                    frame_stack=context.frame_stack,
                    cost=config.pixel_control_cost,
                    cell=config.pixel_control_cell,
                    dtype=dtype,
                )
            }
            if config.pixel_control_cost
            else {}
        )
        self._create_weights(spec)

    def _create_weights(self, spec: types.EnvironmentSpec) -> None:
        """Has every layer see a blank step, which otherwise waits for the first loss."""
        step = tf.nest.map_structure(tf.constant, observations.blank(spec, (1, 1)))
        features, _ = self._trunk(step, self.initial_state(1))
        self._policy_head(tf.cast(features, tf.float32))
        self._state_values(features, tf.zeros([1], tf.int32))
        for auxiliary in self._auxiliary_tasks.values():
            auxiliary(features)

    @property
    def acting_variables(self) -> tuple[tf.Variable, ...]:
        """The weights, and the moments that observations are normalised by."""
        return (*self.trainable_variables, *self._trunk.moments)

    def initial_state(self, batch_size: int | tf.Tensor) -> Any:
        """See `base.Agent`: float32 [B, ...]."""
        return self._trunk.initial_state(batch_size)

    def next_state(self, env_output: types.EnvOutput, core_state: Any) -> Any:
        """See `base.Agent`."""
        return self._trunk(env_output, core_state)[1]

    def _policy_outputs(
        self, env_output: types.EnvOutput, core_state: Any
    ) -> tuple[tf.Tensor, Any]:
        features, core_state = self._trunk(env_output, core_state)
        return self._outputs(features), core_state

    def _outputs(self, features: tf.Tensor) -> tf.Tensor:
        return self._policy_head(tf.cast(features, tf.float32))

    def loss(self, unroll: types.Unroll) -> types.LossOutput:
        """Trust-region V-trace actor-critic loss (LASER, algorithm 1), summed over T and B.

        A transition outside the trust region, and the step between two episodes, takes part in none
        of the terms. The entropy term reads online entries only (section 5.1), or all.

        Args:
          unroll: [T + 1, B, ...].

        Returns:
          The loss with its metrics, and the critic's losses as priorities.
        """
        self._trunk.observe(unroll.env_output)
        features, _ = self._trunk(unroll.env_output, unroll.core_state)
        outputs = self._outputs(features[:-1])
        values = self._state_values(features, unroll.task)
        learned = self._what_to_learn(unroll, outputs, values)
        critic = self._state_values.regression(
            features[:-1], values[:-1], learned.targets.values, learned.trusted, unroll.task
        )
        terms = self._terms(unroll, outputs, learned, critic)
        costs = {"policy": 1.0, "value": self._config.baseline_cost, "entropy": self.entropy_cost}
        for name, auxiliary in self._auxiliary_tasks.items():
            terms[name] = auxiliary.loss(unroll, features, learned.is_transition, learned.trusted)
            costs[name] = auxiliary.cost
        loss = tf.add_n([costs[name] * term for name, term in terms.items()])
        metrics = {
            "loss/total": loss,
            **{f"loss/{name}": term for name, term in terms.items()},
            "vtrace/value": diagnostics.masked_mean(values[:-1], learned.is_transition),
            "network/dead_features_fraction": diagnostics.dead_fraction(
                features[:-1], learned.is_transition
            ),
            **self._off_policy_metrics(unroll, learned),
        }
        priorities = diagnostics.critic_priorities(critic.values, critic.targets, learned.trusted)
        return types.LossOutput(loss, metrics, priorities)

    def _what_to_learn(
        self, unroll: types.Unroll, outputs: tf.Tensor, values: tf.Tensor
    ) -> _Learned:
        """V-trace's targets, in units of reward, and which transitions they hold for."""
        config, env_output = self._config, unroll.env_output
        behaviour = _acted(unroll)
        target = self._distribution.parameters(tf.stop_gradient(outputs))
        is_transition = tf.logical_not(env_output.is_first[1:])
        kl = self._distribution.kl_divergence(target, behaviour.policy)
        trusted = is_transition & self._in_trust_region(target, behaviour.policy, kl)
        log_rhos = self._distribution.log_importance_ratio(
            target, behaviour.policy, behaviour.action, behaviour.extras
        )
        targets = vtrace.vtrace(
            log_rhos,
            config.discount * env_output.discount[1:],
            reward_clipping.REWARD_CLIPS[config.reward_clip](env_output.reward[1:]),
            values,
            trusted,
            rho_bar=config.rho_bar,
            c_bar=config.c_bar,
            lambda_=config.lambda_,
        )
        return _Learned(target, targets, log_rhos, kl, is_transition, trusted)

    def _terms(
        self,
        unroll: types.Unroll,
        outputs: tf.Tensor,
        learned: _Learned,
        critic: state_values.Regression,
    ) -> dict[str, tf.Tensor]:
        """Policy gradient, baseline and entropy, before their costs."""
        trusted, weight = learned.trusted, unroll.importance_weight
        # What outputs are where nothing is trusted must not reach the gradient.
        policy = self._distribution.parameters(masking.keep(trusted, outputs))
        acted = _acted(unroll)
        log_probs = self._distribution.log_prob(policy, acted.action, acted.extras)
        advantages = learned.targets.rhos * learned.targets.advantages / critic.scale
        with_entropy = trusted & (unroll.is_online | self._config.entropy_on_replay)
        return {
            "policy": policy_gradient.policy_gradient_loss(log_probs, weight * advantages, trusted),
            "value": policy_gradient.baseline_loss(
                tf.sqrt(weight) * critic.values, tf.sqrt(weight) * critic.targets, trusted
            ),
            "entropy": policy_gradient.entropy_loss(
                weight * self._distribution.entropy(policy), with_entropy
            ),
        }

    def _in_trust_region(self, target: Any, behaviour: Any, kl: tf.Tensor) -> tf.Tensor:
        """beta(pi, mu, x) < b, bool [T, B]: of parameters [T, B, ...] and KL(pi || mu), [T, B]."""
        config, relevance = self._config, kl
        if config.relevance == "implied":
            relevance = trust_region.implied_relevance(target, behaviour, config.rho_bar)
        # Without a trust region everything is in it, be the divergence infinite or NaN.
        return (relevance < config.kl_threshold) | (config.relevance == "none")

    def _off_policy_metrics(
        self, unroll: types.Unroll, learned: _Learned
    ) -> dict[str, joint_batch.Mean]:
        return diagnostics.off_policy(
            self._distribution.entropy(learned.target),
            learned.kl,
            learned.log_rhos,
            learned.targets.advantages,
            is_transition=learned.is_transition,
            trusted=learned.trusted,
            is_online=unroll.is_online,
            is_own=unroll.is_own,
            rho_bar=self._config.rho_bar,
        )


def _acted(unroll: types.Unroll) -> types.AgentOutput:
    """The actions that had an outcome in the unroll, [T, B, ...], and what was stored of them."""
    return tf.nest.map_structure(lambda leaf: leaf[:-1], unroll.agent_output)

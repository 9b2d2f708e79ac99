"""LASER: off-policy actor-critic with shared experience replay (Schmitt et al. 2020).

With `trust_region="none"` and without replay this agent is IMPALA (Espeholt et al. 2018), LASER's
on-policy baseline. Networks are feed-forward or recurrent; actions are discrete or continuous.
"""

import math
from typing import Any, NamedTuple

import tensorflow as tf

from laser_tf import observations, types
from laser_tf.agents import base, laser_config, pixel_control_task, state_values
from laser_tf.distributions import factory
from laser_tf.networks import heads, trunk
from laser_tf.ops import (
    action_mask,
    diagnostics,
    joint_batch,
    masking,
    policy_gradient,
    reward_clipping,
    trust_region,
    vtrace,
)


class _Targets(NamedTuple):
    """Learning targets of a batch and their masks, [T, B, ...] each."""

    policy: Any  # parameters of the target policy; no gradient
    vtrace_output: vtrace.VTraceOutput
    log_rhos: tf.Tensor  # float32
    kl: tf.Tensor  # KL(pi || mu), float32
    is_transition: tf.Tensor  # bool; false for the step between two episodes
    is_trusted: tf.Tensor  # bool; transitions inside the trust region


class Laser(base.PolicyAgent):
    """LASER agent; implements `base.Agent`."""

    def __init__(self, config: laser_config.LaserConfig, context: base.AgentContext):
        spec, dtype = context.spec, context.dtype
        config.check_actions(spec.action)
        config = config.for_actions(spec.action)
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
        # Networks do not read the task. Only PopArt learns a separate value function per task.
        self._state_values = (
            state_values.PopArtStateValues(
                spec.num_tasks, config.popart_step, rises_at_once=config.popart_rises_at_once
            )
            if config.popart
            else state_values.StateValues()
        )
        self._pixel_control = (
            pixel_control_task.PixelControlTask(
                spec,
                frame_stack=context.frame_stack,
                cost=config.pixel_control_cost,
                cell=config.pixel_control_cell,
                dtype=dtype,
            )
            if config.pixel_control_cost
            else None
        )
        # A forward pass on a blank step creates the weights.
        step = tf.nest.map_structure(tf.constant, observations.padding_steps(spec, (1, 1)))
        features, _ = self._trunk(step, self.initial_state(1))
        self._outputs(features, step)
        self._state_values(features, tf.zeros([1], tf.int32))
        if self._pixel_control:
            self._pixel_control(features)

    @property
    def _acting_network(self) -> trunk.Trunk:
        return self._trunk

    def _policy_outputs(
        self, env_output: types.EnvOutput, core_state: Any
    ) -> tuple[tf.Tensor, Any]:
        features, core_state = self._trunk(env_output, core_state)
        return self._outputs(features, env_output), core_state

    def _outputs(self, features: tf.Tensor, env_output: types.EnvOutput) -> tf.Tensor:
        """Computes the distribution's inputs from features [T, B, F] of the first T time steps."""
        outputs = self._policy_head(tf.cast(features, tf.float32))
        mask = observations.action_mask(env_output.observation)
        return action_mask.apply(outputs, None if mask is None else mask[: outputs.shape[0]])

    def loss(self, unroll: types.Unroll) -> types.LossOutput:
        """Computes the trust-region V-trace loss (LASER, algorithm 1), summed over T and B.

        Transitions outside the trust region and steps between two episodes are masked in all terms.
        The entropy term also excludes replayed batch entries (section 5.1), unless
        `entropy_on_replay` includes them.
        """
        features, _ = self._trunk(unroll.env_output, unroll.core_state)
        outputs = self._outputs(features[:-1], unroll.env_output)
        values = self._state_values(features, unroll.task)
        targets = self._compute_targets(unroll, outputs, values)
        is_transition, is_trusted = targets.is_transition, targets.is_trusted
        value_targets = self._state_values.value_loss_inputs(
            features[:-1], values[:-1], targets.vtrace_output.values, is_trusted, unroll.task
        )
        terms = self._loss_terms(unroll, outputs, targets, value_targets)
        costs = {"policy": 1.0, "value": self._config.baseline_cost, "entropy": self.entropy_cost}
        if self._pixel_control:
            terms["pixel_control"] = self._pixel_control.loss(
                unroll, features, is_transition, is_trusted
            )
            costs["pixel_control"] = self._config.pixel_control_cost
        loss = tf.add_n([costs[name] * term for name, term in terms.items()])
        dead_fraction = diagnostics.dead_fraction(features[:-1], is_transition)
        metrics = {
            "loss/total": loss,
            **{f"loss/{name}": term for name, term in terms.items()},
            "vtrace/value": diagnostics.masked_mean(values[:-1], is_transition),
            "network/dead_features_fraction": dead_fraction,
            **self._off_policy_metrics(unroll, targets),
        }
        priorities = diagnostics.critic_priorities(
            value_targets.values, value_targets.targets, is_trusted
        )
        return types.LossOutput(loss, metrics, priorities)

    def _compute_targets(
        self, unroll: types.Unroll, outputs: tf.Tensor, values: tf.Tensor
    ) -> _Targets:
        """Computes V-trace targets, in units of reward, and the masks of transitions."""
        config, env_output = self._config, unroll.env_output
        behaviour = _behaviour(unroll)
        policy = self._distribution.parameters(tf.stop_gradient(outputs))
        is_transition = tf.logical_not(env_output.is_first[1:])
        kl = self._distribution.kl_divergence(policy, behaviour.policy)
        is_trusted = is_transition & self._in_trust_region(policy, behaviour.policy, kl)
        log_rhos = self._distribution.log_importance_ratio(
            policy, behaviour.policy, behaviour.action, behaviour.extras
        )
        vtrace_output = vtrace.vtrace(
            log_rhos,
            config.discount * env_output.discount[1:],
            reward_clipping.REWARD_CLIPS[config.reward_clip](env_output.reward[1:]),
            values,
            is_trusted,
            rho_bar=config.rho_bar,
            c_bar=config.c_bar,
            lambda_=config.lambda_,
        )
        return _Targets(policy, vtrace_output, log_rhos, kl, is_transition, is_trusted)

    def _loss_terms(
        self,
        unroll: types.Unroll,
        outputs: tf.Tensor,
        targets: _Targets,
        value_targets: state_values.ValueTargets,
    ) -> dict[str, tf.Tensor]:
        """Computes policy, value and entropy losses, without their costs."""
        is_trusted, weight = targets.is_trusted, unroll.importance_weight
        # Masked outputs may be invalid, so they must not reach the gradient.
        policy = self._distribution.parameters(masking.keep(is_trusted, outputs))
        behaviour = _behaviour(unroll)
        log_probs = self._distribution.log_prob(policy, behaviour.action, behaviour.extras)
        rhos, advantages = targets.vtrace_output.rhos, targets.vtrace_output.advantages
        advantages = rhos * advantages / value_targets.scale
        with_entropy = is_trusted & (unroll.is_online | self._config.entropy_on_replay)
        return {
            "policy": policy_gradient.policy_gradient_loss(
                log_probs, weight * advantages, is_trusted
            ),
            "value": policy_gradient.baseline_loss(
                value_targets.values, value_targets.targets, is_trusted, weight
            ),
            "entropy": policy_gradient.entropy_loss(
                weight * self._distribution.entropy(policy), with_entropy
            ),
        }

    def _in_trust_region(self, policy: Any, behaviour: Any, kl: tf.Tensor) -> tf.Tensor:
        """Tests beta(pi, mu, x) < b, bool [T, B]; `kl` is KL(pi || mu), float32 [T, B]."""
        config = self._config
        if config.trust_region == "none":
            return tf.ones_like(kl, tf.bool)
        if config.trust_region == "implied":
            relevance = trust_region.implied_relevance(policy, behaviour, config.rho_bar)
        else:
            relevance = kl
        return relevance < config.kl_threshold

    def _off_policy_metrics(
        self, unroll: types.Unroll, targets: _Targets
    ) -> dict[str, joint_batch.Mean]:
        mean = diagnostics.masked_mean
        is_transition, is_trusted = targets.is_transition, targets.is_trusted
        replayed = is_transition & ~unroll.is_online
        own, foreign = replayed & unroll.is_own, replayed & ~unroll.is_own
        clipped = targets.log_rhos > math.log(self._config.rho_bar)
        advantages = targets.vtrace_output.advantages
        return {
            **self._policy_metrics(targets.policy, targets.kl, is_transition, unroll),
            "vtrace/rho_clipped_fraction": mean(clipped, is_transition),
            "vtrace/advantage_own": mean(advantages, own & is_trusted),
            "vtrace/advantage_foreign": mean(advantages, foreign & is_trusted),
            "trust_region/accepted_fraction": mean(is_trusted, is_transition),
            "trust_region/accepted_replay_fraction": mean(is_trusted, replayed),
            "trust_region/accepted_own_fraction": mean(is_trusted, own),
            "trust_region/accepted_foreign_fraction": mean(is_trusted, foreign),
        }


def _behaviour(unroll: types.Unroll) -> types.AgentOutput:
    """Returns the agent outputs of steps 0 to T - 1, [T, B, ...]."""
    return tf.nest.map_structure(lambda leaf: leaf[:-1], unroll.agent_output)

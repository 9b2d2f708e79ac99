"""ACER's critics for discrete and for continuous actions."""

import abc
from typing import Any, NamedTuple

import tensorflow as tf
from dm_env import specs

from laser_tf.agents import acer_config, average_policy
from laser_tf.distributions import base as distributions_base
from laser_tf.distributions import policy_statistics
from laser_tf.networks import heads, stochastic_dueling
from laser_tf.ops import importance_truncation, policy_gradient


class CriticOutput(NamedTuple):
    """Evaluation of an unroll."""

    values: tf.Tensor  # V(x_t), float32 [T + 1, B]
    q_taken: tf.Tensor  # Q(x_t, a_t), float32 [T, B]; differentiable
    # Second term of equations 10 and 16, float32 [T, B, S], without gradient:
    # E_{a ~ pi} [1 - c / rho(a)]_+ (Q(x, a) - V(x)) grad log f(a|phi).
    correction: tf.Tensor


class Critic(tf.Module, abc.ABC):
    """Evaluates the policy and learns from Retrace targets."""

    trace_root: int  # d, in Retrace's traces min(1, rho^(1/d))
    uses_q_ret_for_policy: bool  # True: the policy gradient's return is Q^ret; False: Q^opc

    @abc.abstractmethod
    def evaluate(self, experience: average_policy.Experience, seed: tf.Tensor) -> CriticOutput:
        """Evaluates the policy on an unroll; `seed`, integers [2], determines sampled actions."""

    def losses(
        self,
        critic_output: CriticOutput,
        targets: tf.Tensor,
        experience: average_policy.Experience,
        weight: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Computes the loss 1/2 (Q^ret - Q(x_t, a_t))^2 by name, float32 []   (equation 6).

        `targets` are Q^ret(x_t, a_t), float32 [T, B]; `weight` of batch entries is float32 [B].
        """
        mask = experience.is_transition
        return {"q": policy_gradient.baseline_loss(critic_output.q_taken, targets, mask, weight)}


class DiscreteCritic(Critic):
    """Q-values of all actions; V and the correction are exact expectations (section 3)."""

    trace_root = 1
    uses_q_ret_for_policy = True

    def __init__(
        self,
        config: acer_config.AcerConfig,
        num_actions: int,
        statistics: policy_statistics.PolicyStatistics,
    ):
        super().__init__()
        self._statistics = statistics
        self._truncation = config.truncation
        self._head = heads.dense(num_actions)

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        """Computes Q-values, float32 [..., A], from features [..., F]."""
        return self._head(features)

    def evaluate(self, experience: average_policy.Experience, seed: tf.Tensor) -> CriticOutput:
        """Evaluates the policy without sampling."""
        action_values = self(experience.features)
        values = tf.reduce_sum(tf.nn.softmax(experience.outputs) * action_values, axis=-1)
        values = tf.stop_gradient(values)  # Equation 6 updates Q(x_t, a_t) only.
        q_taken = tf.gather(action_values[:-1], experience.behaviour.action, axis=-1, batch_dims=2)
        log_rhos = tf.nn.log_softmax(experience.outputs[:-1]) - tf.nn.log_softmax(
            experience.behaviour.policy
        )
        advantages = tf.stop_gradient(action_values[:-1]) - values[:-1, :, None]
        weights = importance_truncation.correction_weights(log_rhos, self._truncation)
        correction = self._statistics.expected_score(experience.outputs[:-1], weights * advantages)
        return CriticOutput(values, q_taken, correction)


class DuelingCritic(Critic):
    """Stochastic dueling network for continuous actions (section 5)."""

    uses_q_ret_for_policy = False

    def __init__(
        self,
        config: acer_config.AcerConfig,
        action: specs.BoundedArray,
        distribution: distributions_base.Distribution,
        statistics: policy_statistics.PolicyStatistics,
    ):
        super().__init__()
        self.trace_root = action.shape[0]
        self._truncation = config.truncation
        self._num_samples = config.dueling_samples
        self._distribution = distribution
        self._statistics = statistics
        self._network = stochastic_dueling.StochasticDuelingNetwork(
            action, config.advantage_units, config.mlp_activation
        )

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        """Computes V, float32 [...], from features [..., F]; creates all weights."""
        values = self._network.values(features)
        blank = tf.zeros([1, *values.shape, self.trace_root])
        self._network.action_values(features, values, blank, blank[:0])
        return values

    def evaluate(self, experience: average_policy.Experience, seed: tf.Tensor) -> CriticOutput:
        """Evaluates the policy; a single sampled action a' gives the correction (equation 16)."""
        policy = experience.fixed_policy
        # The first sample is a', the others are u_1 .. u_n.
        samples = self._sample_actions(policy, seed)
        action, latent = samples.action[0], samples.latent[0]
        values = self._network.values(experience.features)
        q_taken, q_sampled = tf.unstack(
            self._network.action_values(
                experience.features[:-1],
                values[:-1],
                tf.stack([experience.behaviour.action, action]),
                samples.action[1:],
            )
        )
        log_rhos = self._distribution.log_importance_ratio(
            policy, experience.behaviour.policy, action, latent
        )
        weights = importance_truncation.correction_weights(log_rhos, self._truncation)
        advantages = tf.stop_gradient(q_sampled - values[:-1])
        score = self._statistics.score(policy, action, latent)
        return CriticOutput(values, q_taken, (weights * advantages)[..., None] * score)

    def _sample_actions(self, policy: Any, seed: tf.Tensor) -> distributions_base.ActionSample:
        """Samples 1 + n actions in each state, [1 + n, T, B, D]."""
        count = 1 + self._num_samples
        repeated = tf.nest.map_structure(
            lambda leaf: tf.broadcast_to(leaf, [count, *tf.unstack(tf.shape(leaf))]), policy
        )
        return self._distribution.sample(repeated, seed)

    def losses(
        self,
        critic_output: CriticOutput,
        targets: tf.Tensor,
        experience: average_policy.Experience,
        weight: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Computes losses of Q~ to Q^ret and of V to min(1, rho) (Q^ret - Q~) + V (equation 14)."""
        mask, values = experience.is_transition, critic_output.values[:-1]
        errors = tf.stop_gradient(targets - critic_output.q_taken)
        rhos = importance_truncation.truncated_ratios(experience.log_rhos, 1.0)
        value_targets = tf.stop_gradient(values) + rhos * errors
        value_loss = policy_gradient.baseline_loss(values, value_targets, mask, weight)
        return super().losses(critic_output, targets, experience, weight) | {"value": value_loss}

"""ACER's critics: Q of discrete actions, all of them at once, and Q of continuous ones."""

import abc
from typing import Any, NamedTuple

import tensorflow as tf
from dm_env import specs

from laser_tf.agents import acer_config, average_policy
from laser_tf.distributions import base as distributions_base
from laser_tf.distributions import policy_statistics
from laser_tf.networks import heads, stochastic_dueling
from laser_tf.ops import importance_truncation, policy_gradient


class Judgement(NamedTuple):
    """What a critic says of an unroll."""

    values: tf.Tensor  # float32 [T + 1, B], V(x_t)
    q_taken: tf.Tensor  # float32 [T, B], Q(x_t, a_t); receive the gradient
    # float32 [T, B, S], E_{a ~ pi} [1 - c / rho(a)]_+ (Q(x, a) - V(x)) grad log f(a|phi): the
    # second term of equations 10 and 16; no gradient flows into it.
    correction: tf.Tensor


class Critic(tf.Module, abc.ABC):
    """Judges the policy, and learns from Retrace's targets."""

    trace_root: int  # d: Retrace's traces are min(1, rho^(1/d))
    cuts_policy_return: bool  # whether the policy gradient's return is Q^ret; or else Q^opc

    @abc.abstractmethod
    def judge(self, experience: average_policy.Experience, seed: tf.Tensor) -> Judgement:
        """Evaluates the policy of an unroll; `seed`, integers [2], of actions that are drawn."""

    @abc.abstractmethod
    def losses(
        self,
        judgement: Judgement,
        targets: tf.Tensor,
        experience: average_policy.Experience,
        weight: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Losses by name, float32 [], sums over T and B of squared errors, halved.

        Args:
          judgement: of the unroll.
          targets: float32 [T, B], Q^ret(x_t, a_t).
          experience: of the unroll.
          weight: float32 [B], of each unroll.
        """


class DiscreteCritic(Critic):
    """Q of all actions: V and the correction are exact expectations (section 3)."""

    trace_root = 1
    cuts_policy_return = True

    def __init__(
        self,
        config: acer_config.AcerConfig,
        num_actions: int,
        statistics: policy_statistics.PolicyStatistics,
    ):
        """Creates the critic of A actions; its weights appear at the first call."""
        super().__init__()
        self._statistics = statistics
        self._truncation = config.truncation
        self._head = heads.dense(num_actions)

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        """Features float32 [..., F] -> Q float32 [..., A]."""
        return self._head(features)

    def judge(self, experience: average_policy.Experience, seed: tf.Tensor) -> Judgement:
        """See `Critic`; nothing is drawn."""
        action_values = self(experience.features)
        values = tf.reduce_sum(tf.nn.softmax(experience.outputs) * action_values, axis=-1)
        values = tf.stop_gradient(values)  # equation 6 moves Q(x_t, a_t) alone
        taken = tf.gather(action_values[:-1], experience.acted.action, axis=-1, batch_dims=2)
        log_rhos = tf.nn.log_softmax(experience.outputs[:-1]) - tf.nn.log_softmax(
            experience.acted.policy
        )
        advantages = tf.stop_gradient(action_values[:-1]) - values[:-1, :, None]
        weights = importance_truncation.correction(log_rhos, self._truncation)
        correction = self._statistics.expected_score(experience.outputs[:-1], weights * advantages)
        return Judgement(values, taken, correction)

    def losses(
        self,
        judgement: Judgement,
        targets: tf.Tensor,
        experience: average_policy.Experience,
        weight: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """(Q^ret - Q(x_t, a_t))^2   (equation 6)."""
        return {"q": _squares(judgement.q_taken, targets, weight, experience.is_transition)}


class DuelingCritic(Critic):
    """A stochastic dueling network over continuous actions (section 5)."""

    cuts_policy_return = False

    def __init__(
        self,
        config: acer_config.AcerConfig,
        action: specs.BoundedArray,
        distribution: distributions_base.Distribution,
        statistics: policy_statistics.PolicyStatistics,
    ):
        """Creates the critic; its weights appear at the first call.

        Args:
          config: of the agent.
          action: float32 [D] with finite bounds.
          distribution: of the actions.
          statistics: of the distribution.
        """
        super().__init__()
        self.trace_root = action.shape[0]
        self._truncation = config.truncation
        self._samples = config.dueling_samples
        self._distribution = distribution
        self._statistics = statistics
        self._network = stochastic_dueling.StochasticDuelingNetwork(
            action, config.advantage_units, config.mlp_activation
        )

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        """Features float32 [..., F] -> V float32 [...]; creates all weights."""
        values = self._network.values(features)
        blank = tf.zeros([1, *values.shape, self.trace_root])
        self._network.action_values(features, values, blank, blank[:0])
        return values

    def judge(self, experience: average_policy.Experience, seed: tf.Tensor) -> Judgement:
        """See `Critic`; the correction is of one drawn action a' (equation 16)."""
        policy = experience.fixed_policy
        draw = self._draw(policy, seed)
        drawn, latent = draw.action[0], draw.latent[0]  # a'; the others are u_1 .. u_n
        values = self._network.values(experience.features)
        q_taken, q_drawn = tf.unstack(
            self._network.action_values(
                experience.features[:-1],
                values[:-1],
                tf.stack([experience.acted.action, drawn]),
                draw.action[1:],
            )
        )
        log_rhos = self._distribution.log_importance_ratio(
            policy, experience.acted.policy, drawn, latent
        )
        weights = importance_truncation.correction(log_rhos, self._truncation)
        advantages = tf.stop_gradient(q_drawn - values[:-1])
        score = self._statistics.score(policy, drawn, latent)
        return Judgement(values, q_taken, (weights * advantages)[..., None] * score)

    def _draw(self, policy: Any, seed: tf.Tensor) -> distributions_base.Draw:
        """1 + n actions in each state, [1 + n, T, B, D]."""
        count = 1 + self._samples
        several = tf.nest.map_structure(
            lambda leaf: tf.broadcast_to(leaf, [count, *tf.unstack(tf.shape(leaf))]), policy
        )
        return self._distribution.sample(several, seed)

    def losses(
        self,
        judgement: Judgement,
        targets: tf.Tensor,
        experience: average_policy.Experience,
        weight: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Of Q~ by Q^ret, and of V by min(1, rho) (Q^ret - Q~) + V   (equation 14)."""
        mask, values = experience.is_transition, judgement.values[:-1]
        errors = tf.stop_gradient(targets - judgement.q_taken)
        rhos = importance_truncation.truncated(experience.log_rhos, 1.0)
        value_targets = tf.stop_gradient(values) + rhos * errors
        return {
            "q": _squares(judgement.q_taken, targets, weight, mask),
            "value": _squares(values, value_targets, weight, mask),
        }


def _squares(
    values: tf.Tensor, targets: tf.Tensor, weight: tf.Tensor, mask: tf.Tensor
) -> tf.Tensor:
    return policy_gradient.baseline_loss(tf.sqrt(weight) * values, tf.sqrt(weight) * targets, mask)

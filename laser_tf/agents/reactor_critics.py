"""Reactor's critics: returns' distributions (section 3.2), and Q-values (Reactor ND)."""

import abc
from typing import NamedTuple

import tensorflow as tf

from laser_tf.ops import diagnostics, distributional_retrace, joint_batch, retrace


class Transitions(NamedTuple):
    """What Retrace looks at, beside the target network's critic."""

    actions: tf.Tensor  # int32 [T, B], a_0 .. a_{T-1}
    rewards: tf.Tensor  # float32 [T, B], that arrived with x_{t+1}
    discounts: tf.Tensor  # float32 [T, B], gamma times the discount that arrived with x_{t+1}
    policy: tf.Tensor  # float32 [T + 1, B, A], pi of the target network; row 0 is not read
    traces: tf.Tensor  # float32 [T, B], c_t; row 0 is not read
    is_transition: tf.Tensor  # bool [T, B], false for the step between two episodes


class Judgement(NamedTuple):
    """What a critic has to learn of an unroll; where there is no transition it means nothing."""

    returns: tf.Tensor  # float32 [T, B], R_t, Retrace's estimate of Q^pi(x_t, a_t); no gradient
    losses: tf.Tensor  # float32 [T, B]; receive the gradient
    errors: tf.Tensor  # float32 [T, B], what a sequence's priority is the mean of
    metrics: dict[str, joint_batch.Mean]


class Critic(abc.ABC):
    """Makes action values of what a network's last layer gives, and says how to learn them."""

    bins: int  # N, what the layer gives of each action

    @abc.abstractmethod
    def action_values(self, outputs: tf.Tensor) -> tf.Tensor:
        """Outputs float32 [..., A, N] -> Q float32 [..., A]."""

    @abc.abstractmethod
    def judge(
        self, outputs: tf.Tensor, target_outputs: tf.Tensor, transitions: Transitions
    ) -> Judgement:
        """Compares what the online network says of actions taken with the Retrace of the target's.

        Args:
          outputs: float32 [T, B, A, N], of the online network at x_0 .. x_{T-1}.
          target_outputs: float32 [T + 1, B, A, N], of the target network; row 0 is not read.
          transitions: between them.
        """


class ScalarCritic(Critic):
    """Q-values, by squared errors from Retrace: Reactor ND."""

    bins = 1

    def action_values(self, outputs: tf.Tensor) -> tf.Tensor:
        """See `Critic`."""
        return outputs[..., 0]

    def judge(
        self, outputs: tf.Tensor, target_outputs: tf.Tensor, transitions: Transitions
    ) -> Judgement:
        """See `Critic`; errors are |Delta Q(x_t, a_t)| (equation 3)."""
        q_target = self.action_values(target_outputs)
        returns = retrace.retrace(
            transitions.rewards,
            transitions.discounts,
            _of_actions(q_target[:-1], transitions.actions),
            tf.reduce_sum(transitions.policy * q_target, axis=-1),
            transitions.traces,
            transitions.is_transition,
        )
        q_taken = _of_actions(self.action_values(outputs), transitions.actions)
        losses = 0.5 * tf.square(returns - q_taken)
        return Judgement(returns, losses, tf.abs(returns - q_taken), {})


class CategoricalCritic(Critic):
    """Masses on a grid of returns, by cross-entropy from distributional Retrace."""

    def __init__(self, v_min: float, v_max: float, bins: int):
        """Creates the critic of the grid z_1 = v_min .. z_N = v_max; bins: N."""
        self.bins = bins
        self._support = tf.linspace(v_min, v_max, bins)

    def action_values(self, outputs: tf.Tensor) -> tf.Tensor:
        """Q = sum_i z_i q_i, q = softmax (equation 5); see `Critic`."""
        return tf.reduce_sum(self._support * tf.nn.softmax(outputs), axis=-1)

    def judge(
        self, outputs: tf.Tensor, target_outputs: tf.Tensor, transitions: Transitions
    ) -> Judgement:
        """See `Critic`; errors are total variations, and R_t is the mean of the target."""
        masses = tf.nn.softmax(target_outputs)
        targets = distributional_retrace.distributional_retrace(
            transitions.rewards,
            transitions.discounts,
            _of_actions(masses[:-1], transitions.actions),
            tf.reduce_sum(transitions.policy[..., None] * masses, axis=-2),
            transitions.traces,
            transitions.is_transition,
            self._support,
        )
        taken = _of_actions(outputs, transitions.actions)
        errors = distributional_retrace.total_variation(taken, targets)
        is_transition = transitions.is_transition
        metrics = {
            "retrace/total_variation": diagnostics.masked_mean(errors, is_transition),
            # Much of it says that returns lie beyond v_min or v_max.
            "retrace/mass_at_ends": diagnostics.masked_mean(
                targets[..., 0] + targets[..., -1], is_transition
            ),
        }
        return Judgement(
            tf.reduce_sum(self._support * targets, axis=-1),
            distributional_retrace.cross_entropy(taken, targets),
            errors,
            metrics,
        )


def _of_actions(outputs: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
    """float32 [T, B, A, ...], int32 [T, B] -> [T, B, ...]."""
    return tf.gather(outputs, actions, axis=2, batch_dims=2)

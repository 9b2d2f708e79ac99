"""Reactor's critics of return distributions (section 3.2) and of Q-values (Reactor ND)."""

import abc
from typing import NamedTuple

import tensorflow as tf

from laser_tf.ops import diagnostics, distributional_retrace, joint_batch, retrace


class Transitions(NamedTuple):
    """Inputs of Retrace, except for the critic of the target network."""

    actions: tf.Tensor  # a_0 .. a_{T-1}, int32 [T, B]
    rewards: tf.Tensor  # reward that arrived with x_{t+1}, float32 [T, B]
    discounts: tf.Tensor  # gamma times the discount that arrived with x_{t+1}, float32 [T, B]
    policy: tf.Tensor  # pi of the target network, float32 [T + 1, B, A]; step 0 is ignored
    traces: tf.Tensor  # c_t, float32 [T, B]; step 0 is ignored
    is_transition: tf.Tensor  # bool [T, B]; false for the step between two episodes


class CriticOutput(NamedTuple):
    """A critic's losses and errors on an unroll; undefined outside of transitions."""

    returns: tf.Tensor  # R_t, Retrace's estimate of Q^pi(x_t, a_t), float32 [T, B]; no gradient
    losses: tf.Tensor  # float32 [T, B]; differentiable
    errors: tf.Tensor  # errors that the priorities average, float32 [T, B]
    metrics: dict[str, joint_batch.Mean]


class Critic(abc.ABC):
    """Converts network outputs to Q-values and computes the critic loss."""

    bins: int  # N, network outputs per action

    @abc.abstractmethod
    def action_values(self, outputs: tf.Tensor) -> tf.Tensor:
        """Computes Q-values, float32 [..., A], from outputs [..., A, N]."""

    @abc.abstractmethod
    def evaluate(
        self, outputs: tf.Tensor, target_outputs: tf.Tensor, transitions: Transitions
    ) -> CriticOutput:
        """Computes losses with respect to Retrace of the target network.

        `outputs` of the online network are at x_0 .. x_{T-1}, float32 [T, B, A, N].
        `target_outputs` are at x_0 .. x_T, float32 [T + 1, B, A, N]; step 0 is ignored.
        """


class ScalarCritic(Critic):
    """Critic of Q-values with squared Retrace errors (Reactor ND)."""

    bins = 1

    def action_values(self, outputs: tf.Tensor) -> tf.Tensor:
        """Returns the single output of each action."""
        return outputs[..., 0]

    def evaluate(
        self, outputs: tf.Tensor, target_outputs: tf.Tensor, transitions: Transitions
    ) -> CriticOutput:
        """Computes squared losses and the errors |Delta Q(x_t, a_t)| (equation 3)."""
        q_target = self.action_values(target_outputs)
        returns = retrace.retrace(
            transitions.rewards,
            transitions.discounts,
            _gather_actions(q_target[:-1], transitions.actions),
            tf.reduce_sum(transitions.policy * q_target, axis=-1),
            transitions.traces,
            transitions.is_transition,
        )
        q_taken = _gather_actions(self.action_values(outputs), transitions.actions)
        losses = 0.5 * tf.square(returns - q_taken)
        return CriticOutput(returns, losses, tf.abs(returns - q_taken), {})


class CategoricalCritic(Critic):
    """Critic of categorical return distributions with cross-entropy to distributional Retrace."""

    def __init__(self, v_min: float, v_max: float, bins: int):
        """Creates a critic with the support z_1 = v_min .. z_N = v_max of N bins."""
        self.bins = bins
        self._support = tf.linspace(v_min, v_max, bins)

    def action_values(self, outputs: tf.Tensor) -> tf.Tensor:
        """Computes Q = sum_i z_i q_i with q = softmax(outputs)   (equation 5)."""
        return tf.reduce_sum(self._support * tf.nn.softmax(outputs), axis=-1)

    def evaluate(
        self, outputs: tf.Tensor, target_outputs: tf.Tensor, transitions: Transitions
    ) -> CriticOutput:
        """Computes cross-entropy losses and total variations; R_t is the mean of the target."""
        masses = tf.nn.softmax(target_outputs)
        targets = distributional_retrace.distributional_retrace(
            transitions.rewards,
            transitions.discounts,
            _gather_actions(masses[:-1], transitions.actions),
            tf.reduce_sum(transitions.policy[..., None] * masses, axis=-2),
            transitions.traces,
            transitions.is_transition,
            self._support,
        )
        outputs_taken = _gather_actions(outputs, transitions.actions)
        errors = distributional_retrace.total_variation(outputs_taken, targets)
        is_transition = transitions.is_transition
        metrics = {
            "retrace/total_variation": diagnostics.masked_mean(errors, is_transition),
            # A large mass indicates returns outside of [v_min, v_max].
            "retrace/mass_at_ends": diagnostics.masked_mean(
                targets[..., 0] + targets[..., -1], is_transition
            ),
        }
        return CriticOutput(
            tf.reduce_sum(self._support * targets, axis=-1),
            distributional_retrace.cross_entropy(outputs_taken, targets),
            errors,
            metrics,
        )


def _gather_actions(outputs: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
    """Selects the outputs [T, B, ...] of actions, int32 [T, B], from outputs [T, B, A, ...]."""
    return tf.gather(outputs, actions, axis=2, batch_dims=2)

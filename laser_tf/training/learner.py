"""The learner: batches of unrolls in, better weights out."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from laser_tf import array_function, errors
from laser_tf.agents import agent_config, base
from laser_tf.ops import joint_batch
from laser_tf.replay import stored_unroll
from laser_tf.training import adam, learner_config, rmsprop, strategies

NEW_STEPS = "learner/new_steps"  # metric: agent steps that were new in an update


class NonFiniteLossError(errors.UserError):
    """Several updates in a row had a loss or a gradient that is not finite."""


def _make_optimizer(
    config: learner_config.LearnerConfig, variables: Sequence[tf.Variable]
) -> rmsprop.RMSProp | adam.Adam:
    if config.optimizer == learner_config.ADAM:
        return adam.Adam(
            variables, beta1=config.adam_beta1, beta2=config.adam_beta2, epsilon=config.adam_epsilon
        )
    return rmsprop.RMSProp(
        variables,
        decay=config.rmsprop_decay,
        momentum=config.rmsprop_momentum,
        epsilon=config.rmsprop_epsilon,
    )


class Counters(tf.Module):
    """How far a run is; saved with the weights."""

    def __init__(self):
        super().__init__()
        self.learner_updates = tf.Variable(0, trainable=False, dtype=tf.int64)
        self.agent_steps = tf.Variable(0, trainable=False, dtype=tf.int64)
        self.non_finite_updates = tf.Variable(0, trainable=False, dtype=tf.int64)
        self.wall_seconds = tf.Variable(0.0, trainable=False, dtype=tf.float64)


class Learner(tf.Module):
    """Takes gradient steps on an agent's loss; holds all that a checkpoint must restore."""

    def __init__(
        self,
        agent: base.Agent,
        config: learner_config.LearnerConfig,
        *,
        total_agent_steps: int,
        jit: bool,
        member: int = 0,
        strategy: tf.distribute.Strategy | None = None,
        remedies: Callable[[float, stored_unroll.Batch], str] = lambda rate, batch: "",
    ):
        """Creates the learner.

        Args:
          agent: any agent of `laser_tf.agents` whose variables exist already.
          config: of the optimiser.
          total_agent_steps: of the whole run, where a linear learning rate reaches zero.
          jit: whether XLA compiles the update.
          member: index of the agent in its sweep.
          strategy: of several learners, in whose `strategies.variables` the agent was made and this
            is called; None for one.
          remedies: Returns the remedies of a non-finite loss in words, given the learning rate and
            the batch.
        """
        super().__init__()
        self.agent = agent
        self.counters = Counters()
        self.learning_rate = tf.Variable(config.learning_rate, trainable=False)
        self._config = config
        self._total_agent_steps = total_agent_steps
        self._member = member
        self._remedies = remedies
        self._variables = agent.trainable_variables
        self.optimizer = _make_optimizer(config, self._variables)
        self._non_finite_in_a_row = 0
        self._strategy = strategy
        if strategy:
            update = strategies.replicated(strategy, self._update, jit=jit)
            self._compiled_update = array_function.ArrayFunction(update)
            self._vote = strategies.vote(strategy)
        else:
            self._compiled_update = array_function.ArrayFunction(self._update, jit_compile=jit)

    def update(self, batch: stored_unroll.Batch) -> tuple[dict[str, float], np.ndarray]:
        """Takes one step and counts it.

        Several learners call it each with their share of the joint batch, as often, and wait in it
        for one another.

        Args:
          batch: arrays [B, ...].

        Returns:
          The loss's metrics with those of the step itself, of the joint batch, and the priorities
          [B] of this batch's unrolls.

        Raises:
          NonFiniteLossError: after `non_finite_limit` skipped updates in a row.
          LearnersLostError: if another learner has gone.
        """
        with strategies.watch(self._strategy):
            values, priorities = self._compiled_update(batch)
        metrics = {name: float(value) for name, value in values.items()}
        self._stop_if_non_finite(bool(metrics.pop("finite")), batch)
        return metrics, priorities

    def all_agree(self, agrees: bool) -> bool:
        """Whether every learner says True; several wait in it for one another.

        To be asked before each update whether to take it: a learner that ends without the others
        would leave them waiting for its share.

        Raises:
          LearnersLostError: if another learner has gone.
        """
        if self._strategy is None:
            return agrees
        with strategies.watch(self._strategy):
            return int(self._vote(np.array(agrees))) == self._strategy.num_replicas_in_sync

    def take_from_chief(self) -> None:
        """Gives several learners what the chief holds, e.g. of a checkpoint that it restored.

        Raises:
          LearnersLostError: if another learner has gone.
        """
        if self._strategy:
            with strategies.watch(self._strategy):
                strategies.copy_from_chief(self._strategy, self.variables)

    @property
    def hyperparameter_variables(self) -> dict[str, tf.Variable]:
        """What may change while the run goes on, by the config's names; part of checkpoints."""
        variables = {learner_config.LEARNING_RATE: self.learning_rate}
        if learner_config.RMSPROP_EPSILON in self._config.tunable:
            variables[learner_config.RMSPROP_EPSILON] = self.optimizer.epsilon
        return variables | self.agent.hyperparameters

    def hyperparameters(self) -> dict[str, float]:
        """The values that the next update will use; the learning rate before its schedule."""
        # By way of text: the shortest number that is this float32, as a config would have it.
        return {
            name: float(str(variable.numpy()))
            for name, variable in self.hyperparameter_variables.items()
        }

    def set_hyperparameters(self, values: Mapping[str, float]) -> None:
        """Changes some or all of `hyperparameters`, from the next update on.

        Raises:
          ValueError: for an unknown name or a value out of range; nothing is changed then.
        """
        variables = self.hyperparameter_variables
        for name, value in values.items():
            if name not in variables:
                raise errors.ConfigError(
                    f"{type(self.agent).__name__} with {self._config.optimizer} has no "
                    f"hyper-parameter {name!r} to change: choose of {', '.join(variables)}"
                )
            stored = float(np.float32(value))
            if not (
                math.isfinite(stored)
                and (stored > 0 or name == agent_config.ENTROPY_COST and value == 0)
            ):
                raise errors.ConfigError(
                    f"{name} is {value}: use a value above 0 that float32 can hold"
                )
        for name, value in values.items():
            variables[name].assign(value)

    def _update(self, batch: stored_unroll.Batch) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        unroll = stored_unroll.unpack(batch, self._member)
        with tf.GradientTape() as tape:
            output = self.agent.loss(unroll)
        gradients, loss, metrics = joint_batch.all_reduce_sum(
            (tape.gradient(output.loss, self._variables), output.loss, output.metrics)
        )
        norm = tf.linalg.global_norm(gradients)
        finite = tf.math.is_finite(loss) & tf.math.is_finite(norm)
        if self._config.gradient_clip:
            gradients, _ = tf.clip_by_global_norm(gradients, self._config.gradient_clip, norm)
        learning_rate = self.learning_rate * self._schedule()
        tf.cond(finite, lambda: self._apply(gradients, learning_rate), lambda: None)
        self.counters.learner_updates.assign_add(1)
        new_steps = joint_batch.all_reduce_sum(batch.new_steps)
        self.counters.agent_steps.assign_add(new_steps)
        self.counters.non_finite_updates.assign_add(tf.cast(~finite, tf.int64))
        step = {
            "learner/gradient_norm": norm,
            "learner/learning_rate": learning_rate,
            NEW_STEPS: new_steps,
            "finite": finite,
        }
        return joint_batch.metric_values(metrics) | step, output.priorities

    def _apply(self, gradients: list[tf.Tensor], learning_rate: tf.Tensor) -> None:
        self.optimizer.apply(gradients, learning_rate)
        self.agent.after_update()

    def _schedule(self) -> tf.Tensor:
        """The factor on the learning rate: 1, or what is left of the run."""
        if self._config.learning_rate_schedule == "constant":
            return tf.constant(1.0)
        done = tf.cast(self.counters.agent_steps, tf.float32) / self._total_agent_steps
        return tf.maximum(0.0, 1.0 - done)

    def _stop_if_non_finite(self, finite: bool, batch: stored_unroll.Batch) -> None:
        self._non_finite_in_a_row = 0 if finite else self._non_finite_in_a_row + 1
        if self._non_finite_in_a_row >= self._config.non_finite_limit:
            raise NonFiniteLossError(
                f"{self._non_finite_in_a_row} updates in a row had a loss or gradient that is not "
                "finite; none of them was applied. "
                + self._remedies(float(self.learning_rate.numpy()), batch)
            )

"""Learner that updates the weights of an agent from batches of unrolls."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from laser_tf import array_function, errors
from laser_tf.agents import agent_config, base
from laser_tf.ops import joint_batch
from laser_tf.replay import stored_unroll
from laser_tf.training import (
    learner_config,
    metric_means,
    optimizers,
    staged_batches,
    strategies,
)

_NEW_STEPS = "learner/new_steps"  # metric


class NonFiniteLossError(errors.UserError):
    """Several successive updates had a loss or gradient that is not finite."""


class Update(NamedTuple):
    """Result of an update for the host."""

    # Agent steps that it adds to the counter: those of its online entries. In schemes without
    # online entries, they are the steps written since the last update.
    new_steps: int
    priorities: np.ndarray | None  # float32 [B]; None unless replay uses them


class Counters(tf.Module):
    """Counters of a run, saved with the weights."""

    def __init__(self):
        super().__init__()
        self.learner_updates = tf.Variable(0, trainable=False, dtype=tf.int64)
        self.agent_steps = tf.Variable(0, trainable=False, dtype=tf.int64)
        self.non_finite_updates = tf.Variable(0, trainable=False, dtype=tf.int64)
        self.wall_seconds = tf.Variable(0.0, trainable=False, dtype=tf.float64)


class Learner(tf.Module):
    """Takes gradient steps on an agent's loss. A checkpoint holds the variables of the learner."""

    def __init__(
        self,
        agent: base.Agent,
        config: learner_config.LearnerConfig,
        *,
        total_agent_steps: int,
        jit: bool,
        member_index: int = 0,
        strategy: tf.distribute.Strategy | None = None,
        with_priorities: bool = True,
        stages_batches: bool = False,
    ):
        """Creates the learner.

        Call it in the `strategies.variables(strategy)` block in which the agent was created. A
        linear schedule reduces the learning rate to zero over `total_agent_steps`. With `jit`, XLA
        compiles the update. `member_index` identifies the member's experience in a sweep. Updates
        return priorities if `with_priorities` is True. With `stages_batches`, which needs one
        replica, `stage` copies batches to the device.
        """
        super().__init__()
        self.agent = agent
        self.counters = Counters()
        self.learning_rate = tf.Variable(config.learning_rate, trainable=False)
        self._config = config
        self._total_agent_steps = total_agent_steps
        self._member_index = member_index
        self.optimizer = optimizers.make(config, agent.trainable_variables)
        self._strategy = strategy
        self._with_priorities = with_priorities
        self._metric_means = metric_means.MetricMeans()
        self._staged = staged_batches.StagedBatches() if stages_batches else None
        # In no `tf.Module`, so that no checkpoint contains it.
        skipped_in_a_row = tf.Variable(0, trainable=False, dtype=tf.int64)
        self._skipped_in_a_row = lambda: skipped_in_a_row
        self._read_skipped = array_function.ArrayFunction(lambda: tf.identity(skipped_in_a_row))
        self._updates_until_check = config.non_finite_limit
        self._compiled: Any  # a function of a batch of tensors
        if strategy:
            self._vote = strategies.vote(strategy)
            self._compiled = strategies.replicated(strategy, self._update, jit=jit)
        else:
            self._compiled = tf.function(self._update, jit_compile=jit, autograph=False)
        self._update_and_measure = array_function.ArrayFunction(self._trace)

    def update(self, batch: stored_unroll.Batch) -> Update:
        """Runs one update and increments the counters.

        The NumPy batch [B, ...] has the same shapes and dtypes in all calls. Each of several
        learners calls this method with its share of the joint batch and blocks until all have
        called it. `new_steps` are those of the joint batch.

        Raises:
          NonFiniteLossError: After `non_finite_limit` skipped updates in a row.
          LearnersLostError: If another learner has ended.
        """
        with strategies.convert_errors(self._strategy):
            if self._staged:
                self._staged.prepare(batch)
                results = self._update_and_measure()
            else:
                results = self._update_and_measure(batch)
            self._check_skipped(batch)
        new_steps = results.get("new_steps", batch.new_steps)
        return Update(int(new_steps), results.get("priorities"))

    def stage(self, batch: stored_unroll.Batch) -> stored_unroll.Batch:
        """Starts to copy a batch to an accelerator, before its `update`; returns the batch.

        Call `update` with the batches in the same order. One thread may call this method while
        another one calls `update`.
        """
        if self._staged:
            self._staged.add(batch)
        return batch

    def discard_staged(self) -> None:
        """Frees the batches that were staged and not used."""
        if self._staged:
            self._staged.clear()

    def metrics(self) -> dict[str, float]:
        """Returns the means of metrics over the updates since the last call; {} without any."""
        return self._metric_means.read()

    def _check_skipped(self, batch: stored_unroll.Batch) -> None:
        """Raises NonFiniteLossError if too many updates in a row were skipped.

        Reads their number only when it can have reached the limit.
        """
        self._updates_until_check -= 1
        if self._updates_until_check > 0:
            return
        skipped = int(self._read_skipped())
        self._updates_until_check = self._config.non_finite_limit - skipped
        if self._updates_until_check <= 0:
            env_output = batch.unrolls.env_output
            raise NonFiniteLossError(
                f"Skipped {skipped} successive updates, because their loss or gradient was not "
                "finite. The max absolute value in the last batch is "
                f"{_largest(env_output.reward):g} for rewards and "
                f"{_largest(env_output.observation):g} for observations. Start a new --workdir "
                "with one of: observations scaled to about 1, --config.agent.reward_clip=unit, "
                "--config.learner.gradient_clip=40, --config.learner.compute_dtype=float32, a "
                "lower --config.learner.learning_rate."
            )

    def program(self, batch: stored_unroll.Batch, *, stage: str) -> Any:
        """Returns the XLA program of an update, of a learner with `jit` and one replica.

        The batch of arrays is not used for an update. For `stage` see TensorFlow's
        `experimental_get_compiler_ir`: the program is text, or bytes if it ends in "serialized".
        """
        tensors = tf.nest.map_structure(tf.constant, batch)
        return self._compiled.experimental_get_compiler_ir(tensors)(stage=stage)

    def all_agree(self, agrees: bool) -> bool:
        """Returns whether the argument is True in all learners; blocks until all call it.

        Call it before each update: if one learner stopped without the others, they would block.
        Raises LearnersLostError if another learner has ended.
        """
        if self._strategy is None:
            return agrees
        with strategies.convert_errors(self._strategy):
            return int(self._vote(np.array(agrees))) == self._strategy.num_replicas_in_sync

    def broadcast_from_chief(self) -> None:
        """Copies the chief's variables to all learners; LearnersLostError if another has ended."""
        if self._strategy:
            with strategies.convert_errors(self._strategy):
                strategies.broadcast_from_chief(self._strategy, self.variables)

    @property
    def hyperparameter_variables(self) -> dict[str, tf.Variable]:
        """Hyper-parameters that may change during the run, by their configuration keys."""
        variables = {learner_config.LEARNING_RATE: self.learning_rate}
        if learner_config.RMSPROP_EPSILON in self._config.tunable:
            variables[learner_config.RMSPROP_EPSILON] = self.optimizer.epsilon
        return variables | self.agent.hyperparameters

    def hyperparameters(self) -> dict[str, float]:
        """Returns the values for the next update; the schedule's factor is not applied."""
        # str() gives the shortest decimal of a float32, e.g. 0.001.
        return {
            name: float(str(variable.numpy()))
            for name, variable in self.hyperparameter_variables.items()
        }

    def set_hyperparameters(self, values: Mapping[str, float]) -> None:
        """Changes some or all of `hyperparameters`, or raises ConfigError and changes nothing."""
        variables = self.hyperparameter_variables
        for name, value in values.items():
            if name not in variables:
                raise errors.ConfigError(
                    f"{name} must be a tunable hyper-parameter of {type(self.agent).__name__} with "
                    f"{self._config.optimizer}, got {value}. Use one of {', '.join(variables)}."
                )
            stored = float(np.float32(value))
            is_zero_allowed = name == agent_config.ENTROPY_COST and value == 0
            if not (math.isfinite(stored) and (stored > 0 or is_zero_allowed)):
                raise errors.ConfigError(f"{name} must be above 0 and fit float32, got {value}.")
        for name, value in values.items():
            variables[name].assign(value)

    def _trace(self, *batch: stored_unroll.Batch) -> dict[str, tf.Tensor]:
        """Runs the compiled update and returns what `update` needs from the device."""
        metrics, priorities = self._compiled(self._staged.take() if self._staged else batch[0])
        self._metric_means.add(metrics)
        results = {"priorities": priorities} if self._with_priorities else {}
        # A single process has the whole joint batch, so that it can count the new steps itself.
        if isinstance(self._strategy, tf.distribute.MultiWorkerMirroredStrategy):
            results["new_steps"] = metrics[_NEW_STEPS]
        return results

    def _update(self, batch: stored_unroll.Batch) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        unroll = stored_unroll.unpack(batch, self._member_index)
        self.agent.update_normalisers(unroll.env_output)
        with tf.GradientTape() as tape:
            output = self.agent.loss(unroll)
        # `trainable_variables` is not kept in an attribute, because a checkpoint would restore a
        # stored list by position; see `RMSProp`.
        variables = self.agent.trainable_variables
        zero = tf.UnconnectedGradients.ZERO  # e.g. of a torso of the user
        local = tape.gradient(output.loss, variables, unconnected_gradients=zero)
        gradients, loss, metrics = joint_batch.all_reduce_sum((local, output.loss, output.metrics))
        norm = tf.linalg.global_norm(gradients)
        finite = tf.math.is_finite(loss) & tf.math.is_finite(norm)
        if self._config.gradient_clip:
            gradients, _ = tf.clip_by_global_norm(gradients, self._config.gradient_clip, norm)
        learning_rate = self.learning_rate * self._schedule()
        tf.cond(finite, lambda: self._apply(gradients, learning_rate), lambda: None)
        self.counters.learner_updates.assign_add(1)
        new_steps = joint_batch.all_reduce_sum(batch.new_steps)
        self.counters.agent_steps.assign_add(new_steps)
        skipped = tf.cast(~finite, tf.int64)
        self.counters.non_finite_updates.assign_add(skipped)
        in_a_row = self._skipped_in_a_row()
        in_a_row.assign(skipped * (in_a_row + 1))
        update_metrics = {
            "learner/gradient_norm": norm,
            "learner/learning_rate": learning_rate,
            _NEW_STEPS: new_steps,
        }
        return joint_batch.metric_values(metrics) | update_metrics, output.priorities

    def _apply(self, gradients: list[tf.Tensor], learning_rate: tf.Tensor) -> None:
        self.optimizer.apply(gradients, learning_rate)
        self.agent.after_update()

    def _schedule(self) -> tf.Tensor:
        """Returns the factor of the learning rate, float32 []."""
        if self._config.learning_rate_schedule == "constant":
            return tf.constant(1.0)
        done = tf.cast(self.counters.agent_steps, tf.float32) / self._total_agent_steps
        return tf.maximum(0.0, 1.0 - done)


def _largest(arrays: Any) -> float:
    """Returns the max absolute value of all float arrays in a nest; 0 without float arrays."""
    floats = [leaf for leaf in tf.nest.flatten(arrays) if np.issubdtype(leaf.dtype, np.floating)]
    return max((float(np.abs(leaf).max()) for leaf in floats), default=0.0)

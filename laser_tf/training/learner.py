"""Learner that updates the weights of an agent from batches of unrolls."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from laser_tf import array_function, errors
from laser_tf.agents import agent_config, base
from laser_tf.ops import joint_batch
from laser_tf.replay import batch_sources, client, stored_unroll
from laser_tf.training import learner_config, optimizers, run_config, strategies

# Metric: number of agent steps that an update adds to the counter. They are the steps of its online
# entries. In schemes without online entries, they are the steps written since the last update.
NEW_STEPS = "learner/new_steps"


class NonFiniteLossError(errors.UserError):
    """Several successive updates had a loss or gradient that is not finite."""


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
    ):
        """Creates the learner.

        Call it in the `strategies.variables(strategy)` block in which the agent was created. A
        linear schedule reduces the learning rate to zero over `total_agent_steps`. With `jit`, XLA
        compiles the update. `member_index` identifies the member's experience in a sweep.
        """
        super().__init__()
        self.agent = agent
        self.counters = Counters()
        self.learning_rate = tf.Variable(config.learning_rate, trainable=False)
        self._config = config
        self._total_agent_steps = total_agent_steps
        self._member_index = member_index
        self.optimizer = optimizers.make(config, agent.trainable_variables)
        self._non_finite_in_a_row = 0
        self._strategy = strategy
        if strategy:
            update = strategies.replicated(strategy, self._update, jit=jit)
            self._compiled_update = array_function.ArrayFunction(update)
            self._vote = strategies.vote(strategy)
        else:
            self._compiled_update = array_function.ArrayFunction(self._update, jit_compile=jit)

    def update(self, batch: stored_unroll.Batch) -> tuple[dict[str, float], np.ndarray]:
        """Runs one update, increments the counters and returns metrics and priorities [B].

        The NumPy batch [B, ...] has the same shapes and dtypes in all calls. Each of several
        learners calls this method with its share of the joint batch, blocks until all have called
        it, and gets the metrics of the joint batch.

        Raises:
          NonFiniteLossError: After `non_finite_limit` skipped updates in a row.
          LearnersLostError: If another learner has ended.
        """
        with strategies.convert_errors(self._strategy):
            values, priorities = self._compiled_update(batch)
        metrics = {name: float(value) for name, value in values.items()}
        is_finite = bool(metrics.pop("finite"))
        self._non_finite_in_a_row = 0 if is_finite else self._non_finite_in_a_row + 1
        if self._non_finite_in_a_row >= self._config.non_finite_limit:
            env_output = batch.unrolls.env_output
            raise NonFiniteLossError(
                f"Skipped {self._non_finite_in_a_row} successive updates, because their loss or "
                "gradient was not finite. The max absolute value in the last batch is "
                f"{_largest(env_output.reward):g} for rewards and "
                f"{_largest(env_output.observation):g} for observations. Start a new --workdir "
                "with one of: observations scaled to about 1, --config.agent.reward_clip=unit, "
                "--config.learner.gradient_clip=40, --config.learner.compute_dtype=float32, a "
                "lower --config.learner.learning_rate."
            )
        return metrics, priorities

    def program(self, batch: stored_unroll.Batch, *, stage: str) -> Any:
        """Returns the XLA program of an update of a learner with `jit`.

        See `ArrayFunction.program`.
        """
        return self._compiled_update.program(batch, stage=stage)

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

    def _update(self, batch: stored_unroll.Batch) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        unroll = stored_unroll.unpack(batch, self._member_index)
        self.agent.update_normalisers(unroll.env_output)
        with tf.GradientTape() as tape:
            output = self.agent.loss(unroll)
        # `trainable_variables` is not kept in an attribute, because a checkpoint would restore a
        # stored list by position; see `RMSProp`.
        local = tape.gradient(output.loss, self.agent.trainable_variables)
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
        self.counters.non_finite_updates.assign_add(tf.cast(~finite, tf.int64))
        update_metrics = {
            "learner/gradient_norm": norm,
            "learner/learning_rate": learning_rate,
            NEW_STEPS: new_steps,
            "finite": finite,
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


def experience_age(
    batch: stored_unroll.Batch, learner_updates: int, member_index: int
) -> dict[str, float]:
    """Returns the mean policy lag of online entries and the mean age of replayed entries.

    Both count the updates between the weights that acted and the current ones. Entries of other
    members and padding have no age. A metric without any age is left out.
    """
    unrolls = batch.unrolls
    has_age = (unrolls.member == member_index) & ~np.all(unrolls.env_output.is_first, axis=1)
    ages = learner_updates - unrolls.learner_update
    parts = {
        "replay/policy_lag_updates": ages[has_age & batch.is_online],
        "replay/age_updates": ages[has_age & ~batch.is_online],
    }
    return {name: float(ages.mean()) for name, ages in parts.items() if ages.size}


def follow(
    config: run_config.RunConfig,
    follower: Learner,
    replay: client.ReplayClient,
    batches: batch_sources.BatchSource,
    should_stop: Callable[[], bool],
) -> bool:
    """Joins the chief's updates until a learner has to stop; returns whether the budget is spent.

    The follower gets its share of each batch. For the errors see `Learner.update`.
    """
    agent_steps = int(follower.counters.agent_steps.numpy())
    while agent_steps < config.total_agent_steps:
        batch = batches.get(should_stop)
        if not follower.all_agree(batch is not None):
            return False
        metrics, priorities = follower.update(batch)
        agent_steps += int(metrics[NEW_STEPS])
        if config.replay.uses_priorities:
            replay.update_priorities(batch, priorities)
    return True

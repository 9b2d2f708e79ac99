"""What a run, its evaluation and benchmarks build from a configuration."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from laser_tf.agents import laser
from laser_tf.environments import base
from laser_tf.replay import stored_unroll, tables
from laser_tf.runtime import array_function, learner, run_config


def build_agent(
    config: run_config.RunConfig, environment: base.BatchedEnvironment, dtype: str, seed: int
) -> laser.Laser:
    """Creates an agent whose variables exist.

    Args:
      config: the run's.
      environment: whose specs the agent must fit.
      dtype: compute dtype, "float32" or "bfloat16".
      seed: of the actions it will draw.
    """
    agent = laser.Laser(config.agent, environment.spec(), dtype, seed)
    signature = stored_unroll.signature(
        environment.spec(),
        agent.initial_state(1),
        unroll_length=1,
        frame_stack=config.replay.frame_stack,
    )
    # Nothing is learned from an unroll without transitions.
    unrolls = tf.nest.map_structure(lambda array: array[None], stored_unroll.blank(signature))
    batch = stored_unroll.unweighted(unrolls, np.array([True]))
    agent.loss(
        stored_unroll.unpack(tf.nest.map_structure(tf.constant, batch), config.replay.frame_stack)
    )
    return agent


def build_learner(
    config: run_config.RunConfig,
    environment: base.BatchedEnvironment,
    dtype: str,
    *,
    jit: bool,
    agent_index: int = 0,
) -> learner.Learner:
    """Creates the learner of a run, with fresh weights.

    Args:
      config: the run's.
      environment: whose specs the agent must fit.
      dtype: compute dtype, "float32" or "bfloat16".
      jit: whether XLA compiles the update.
      agent_index: of the agent in its sweep.
    """
    tf.keras.utils.set_random_seed(config.run.seed)
    return learner.Learner(
        build_agent(config, environment, dtype, config.run.seed),
        config.learner,
        total_agent_steps=config.total_agent_steps,
        frame_stack=config.replay.frame_stack,
        jit=jit,
        agent_index=agent_index,
    )


def unroll_signature(
    config: run_config.RunConfig, environment: base.BatchedEnvironment, agent: laser.Laser
) -> stored_unroll.StoredUnroll:
    """The `tf.TensorSpec`s of what the run's actors write."""
    return stored_unroll.signature(
        environment.spec(),
        agent.initial_state(1),
        unroll_length=config.replay.unroll_length,
        frame_stack=config.replay.frame_stack,
    )


def state_recomputation(
    agent: laser.Laser, config: tables.Config
) -> Callable[[stored_unroll.StoredUnroll], Any]:
    """What a `replayer.Replayer` calls: carries core states on, with the agent's newest weights.

    Args:
      agent: the learner's.
      config: of replay.

    Returns:
      Arrays `StoredUnroll [replay_rows, ...]` -> the core states before their last row.
    """

    def next_state(stored: stored_unroll.StoredUnroll) -> Any:
        batch = stored_unroll.unweighted(stored, np.zeros(config.replay_rows, bool))
        unroll = stored_unroll.unpack(batch, config.frame_stack)
        rows = tf.nest.map_structure(lambda column: column[:-1], unroll.env_output)
        return agent.next_state(rows, unroll.core_state)

    return array_function.ArrayFunction(next_state)

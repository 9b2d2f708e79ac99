"""What a run, its evaluation and benchmarks build from a configuration."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from laser_tf.agents import laser, r2d2, r2d2_config
from laser_tf.environments import base
from laser_tf.replay import (
    connection,
    episode_writer,
    recorder,
    replay_config,
    sequence_writer,
    stored_unroll,
    unroll_buffer,
    writer,
)
from laser_tf.runtime import array_function, learner, run_config

Agent = laser.Laser | r2d2.R2D2


def build_agent(
    config: run_config.RunConfig,
    environment: base.BatchedEnvironment,
    dtype: str,
    seed: int,
    *,
    evaluating: bool = False,
) -> Agent:
    """Creates an agent whose variables exist.

    Args:
      config: the run's.
      environment: whose specs the agent must fit.
      dtype: compute dtype, "float32" or "bfloat16".
      seed: of the actions it will draw.
      evaluating: whether it plays an evaluation instead of gathering experience.
    """
    if isinstance(config.agent, r2d2_config.R2D2Config):
        return r2d2.R2D2(
            config.agent,
            environment.spec(),
            dtype,
            seed,
            frame_stack=config.replay.frame_stack,
            burn_in=config.replay.burn_in,
            evaluating=evaluating,
        )
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
    config: run_config.RunConfig, environment: base.BatchedEnvironment, agent: Agent
) -> stored_unroll.StoredUnroll:
    """The `tf.TensorSpec`s of what the run's actors write."""
    return stored_unroll.signature(
        environment.spec(),
        agent.initial_state(1),
        unroll_length=config.replay.unroll_length,
        frame_stack=config.replay.frame_stack,
        for_sequences=config.replay.replay_table == replay_config.SEQUENCES,
    )


def initial_priority(
    agent: r2d2.R2D2, config: replay_config.ReplayConfig
) -> Callable[[stored_unroll.StoredUnroll], float]:
    """What a `sequence_writer.SequenceWriter` calls: the priority of a new sequence.

    Args:
      agent: an actor's.
      config: of replay.
    """

    def priorities(parts: stored_unroll.StoredUnroll) -> tf.Tensor:
        one = tf.nest.map_structure(lambda column: column[None], parts)
        no_frames = tf.zeros([*one.is_first.shape, 1, 1, 1], tf.uint8)
        unrolls, _ = stored_unroll.join(one._replace(frames=no_frames), config.frame_stack)
        batch = stored_unroll.unweighted(unrolls, np.array([False]))
        return agent.initial_priorities(stored_unroll.unpack(batch, config.frame_stack))[0]

    compiled = array_function.ArrayFunction(priorities)
    return lambda parts: float(compiled(parts))


def make_recorders(
    config: replay_config.ReplayConfig,
    replay: connection.Connection,
    signature: stored_unroll.StoredUnroll,
    agent: Agent,
    *,
    task_ids: np.ndarray,
    agent_index: int,
    max_unrolls_per_episode: int,
) -> list[recorder.Recorder]:
    """What an actor's rows go to: the learner's queue and replay.

    Args:
      config: of the tables.
      replay: where to write.
      signature: of an unroll.
      agent: the actor's.
      task_ids: integers [N], the tasks that the actor's games play.
      agent_index: of the agent in its sweep.
      max_unrolls_per_episode: unrolls that the longest episode is cut into.
    """
    queue = replay.queue

    def make_buffer(signature: stored_unroll.StoredUnroll) -> unroll_buffer.UnrollBuffer:
        return unroll_buffer.UnrollBuffer(signature, task_ids, agent_index)

    if config.replay_table == replay_config.SEQUENCES:
        priority = initial_priority(agent, config)
        return [
            sequence_writer.SequenceWriter(
                replay.client, make_buffer(signature), config, queue, signature, priority
            )
        ]
    unrolls = writer.UnrollWriter(
        replay.client, config.unroll_tables(queue), config.counting_tables(queue)
    )
    recorders = [writer.UnrollRecorder(unrolls, make_buffer(signature))]
    if config.replay_table == replay_config.EPISODES:
        buffer = make_buffer(signature._replace(core_state=()))
        recorders.append(
            episode_writer.EpisodeWriter(replay.client, buffer, max_unrolls_per_episode)
        )
    return recorders


def state_recomputation(
    agent: Agent, config: replay_config.ReplayConfig
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

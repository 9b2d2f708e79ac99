"""What a run, its evaluation and benchmarks build from a configuration."""

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from laser_tf import errors, observations, types
from laser_tf.agents import base as agents_base
from laser_tf.agents import registry
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
from laser_tf.training import array_function, finiteness, learner, run_config, strategies


def build_agent(
    config: run_config.RunConfig,
    spec: types.EnvironmentSpec,
    dtype: str,
    seed: int,
    *,
    evaluating: bool = False,
    actor: int = 0,
    actors: int = 1,
) -> agents_base.Agent:
    """Creates an agent whose variables exist.

    Args:
      config: the run's.
      spec: of the environment, images as single frames.
      dtype: compute dtype, "float32" or "bfloat16".
      seed: of the actions it will draw.
      evaluating: whether it plays an evaluation instead of gathering experience.
      actor: index of the actor that it acts in.
      actors: how many there are.

    Raises:
      UserError: If the network does not fit into memory.
    """
    context = agents_base.Context(
        spec=_seen_by_agent(spec, config.replay.frame_stack),
        frame_stack=config.replay.frame_stack,
        dtype=dtype,
        seed=seed,
        burn_in=config.replay.burn_in,
        evaluating=evaluating,
        actor=actor,
        actors=actors,
    )
    try:
        return registry.make(config.agent, context)
    except tf.errors.ResourceExhaustedError as error:
        shape = re.search(r"shape\[[\d,]*\]", str(error))
        tensor = f" (a tensor of {shape[0]})" if shape else ""
        raise errors.UserError(
            f"the network of {config.agent.kind} must fit into memory, but "
            f"{observations.describe(spec)} make it too large{tensor}. Show smaller observations, "
            "or use a smaller network."
        ) from None


def _seen_by_agent(spec: types.EnvironmentSpec, frame_stack: int) -> types.EnvironmentSpec:
    return spec._replace(observation=observations.stacked(spec.observation, frame_stack))


def build_learner(
    config: run_config.RunConfig,
    spec: types.EnvironmentSpec,
    dtype: str,
    *,
    jit: bool,
    member: int = 0,
    strategy: tf.distribute.Strategy | None = None,
) -> learner.Learner:
    """Creates the learner of a run, with fresh weights.

    Args:
      config: the run's.
      spec: of the environment, images as single frames.
      dtype: compute dtype, "float32" or "bfloat16".
      jit: whether XLA compiles the update.
      member: index of the agent in its sweep.
      strategy: of several learners, from `strategies.make`; None for one.
    """
    tf.keras.utils.set_random_seed(config.run.seed)
    with strategies.variables(strategy):
        return learner.Learner(
            build_agent(config, spec, dtype, config.run.seed),
            config.learner,
            total_agent_steps=config.total_agent_steps,
            jit=jit,
            member=member,
            strategy=strategy,
            remedies=functools.partial(finiteness.remedies_of_loss, config, dtype),
        )


def unroll_signature(
    config: run_config.RunConfig, spec: types.EnvironmentSpec, agent: agents_base.Agent
) -> stored_unroll.StoredUnroll:
    """The `tf.TensorSpec`s of what the run's actors write."""
    frame_stack = config.replay.frame_stack
    step = tf.nest.map_structure(
        tf.TensorSpec.from_tensor,
        tf.nest.map_structure(
            tf.constant, observations.blank(_seen_by_agent(spec, frame_stack), (1,))
        ),
    )
    state = tf.nest.map_structure(tf.TensorSpec.from_tensor, agent.initial_state(1))
    # Traced, not called: whatever an agent answers is stored, without a list of it by hand.
    traced = tf.function(agent.act, autograph=False).get_concrete_function(step, state)
    agent_output, core_state = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec(leaf.shape[1:], leaf.dtype), traced.structured_outputs
    )
    return stored_unroll.signature(
        spec,
        agent_output,
        core_state,
        unroll_length=config.replay.unroll_length,
        frame_stack=frame_stack,
        for_sequences=bool(config.replay.sequence_length),
    )


def initial_priority(
    agent: agents_base.Agent,
) -> Callable[[stored_unroll.StoredUnroll], float]:
    """What a `sequence_writer.SequenceWriter` calls: the priority of a new sequence.

    Args:
      agent: an actor's.
    """

    def priorities(parts: stored_unroll.StoredUnroll) -> tf.Tensor:
        one = tf.nest.map_structure(lambda leaf: leaf[None], parts)
        unrolls, _ = stored_unroll.join(one)
        batch = stored_unroll.unweighted(unrolls, np.array([False]))
        return agent.initial_priorities(stored_unroll.unpack(batch))[0]

    compiled = array_function.ArrayFunction(priorities)
    return lambda parts: float(compiled(parts))


def make_recorders(
    config: replay_config.ReplayConfig,
    replay: connection.ReplayConnection,
    signature: stored_unroll.StoredUnroll,
    agent: agents_base.Agent,
    *,
    task_ids: np.ndarray,
    member: int,
    max_unrolls_per_episode: int,
) -> list[recorder.Recorder]:
    """What an actor's steps go to: the learner's queue and replay.

    Args:
      config: of the tables.
      replay: where to write.
      signature: of an unroll.
      agent: the actor's.
      task_ids: integers [N], the tasks that the actor's games play.
      member: index of the agent in its sweep.
      max_unrolls_per_episode: unrolls that the longest episode is cut into.
    """
    queue = replay.queue

    def make_buffer(signature: stored_unroll.StoredUnroll) -> unroll_buffer.UnrollBuffer:
        return unroll_buffer.UnrollBuffer(signature, task_ids, member)

    if config.sequence_length:
        is_contextual = config.priorities == replay_config.CONTEXTUAL
        priority = (lambda _: 1.0) if is_contextual else initial_priority(agent)  # of none is asked
        return [
            sequence_writer.SequenceWriter(
                replay, make_buffer(signature), config, queue, signature, priority
            )
        ]
    unrolls = writer.UnrollWriter(
        replay, config.unroll_tables(queue), config.counting_tables(queue)
    )
    recorders: list[recorder.Recorder] = [writer.UnrollRecorder(unrolls, make_buffer(signature))]
    if config.replay_table == replay_config.EPISODES:
        buffer = make_buffer(signature._replace(core_state=()))
        recorders.append(episode_writer.EpisodeWriter(replay, buffer, max_unrolls_per_episode))
    return recorders


def state_recomputation(
    agent: agents_base.Agent, config: replay_config.ReplayConfig
) -> Callable[[stored_unroll.StoredUnroll], Any]:
    """What a `replayer.Replayer` calls: carries core states on, with the agent's newest weights.

    Args:
      agent: the learner's.
      config: of replay.

    Returns:
      Arrays `StoredUnroll [replay_entries, ...]` -> the core states before their last step.
    """

    def next_state(stored: stored_unroll.StoredUnroll) -> Any:
        batch = stored_unroll.unweighted(stored, np.zeros(config.replay_entries, bool))
        unroll = stored_unroll.unpack(batch)
        steps = tf.nest.map_structure(lambda leaf: leaf[:-1], unroll.env_output)
        return agent.next_state(steps, unroll.core_state)

    return array_function.ArrayFunction(next_state)

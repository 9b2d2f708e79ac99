"""Builds agents, learners, replay and batches from the configuration of a run."""

import logging
import pathlib
import re

import tensorflow as tf

from laser_tf import errors, observations, types
from laser_tf.agents import base as agents_base
from laser_tf.agents import registry
from laser_tf.replay import (
    batch_sources,
    client,
    connection,
    server,
    stored_unroll,
    unroll_check,
)
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.training import learner as learner_module
from laser_tf.training import membership, run_config, strategies
from laser_tf.workdir import run_directory


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
      config: Configuration of the run.
      spec: Specs of the environment, images as single frames.
      dtype: Compute dtype, "float32" or "bfloat16".
      seed: Seed of the actions.
      evaluating: Whether the agent acts in an evaluation.
      actor: Index of its actor.
      actors: Number of actors.

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
        actor_index=actor,
        num_actors=actors,
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
    return spec._replace(observation=observations.stack_specs(spec.observation, frame_stack))


def build_learner(
    config: run_config.RunConfig,
    spec: types.EnvironmentSpec,
    dtype: str,
    *,
    jit: bool,
    member: int = 0,
    strategy: tf.distribute.Strategy | None = None,
) -> learner_module.Learner:
    """Creates the learner of a run with random weights.

    Args:
      config: Configuration of the run.
      spec: Specs of the environment, images as single frames.
      dtype: Compute dtype, "float32" or "bfloat16".
      jit: Whether XLA compiles the update.
      member: Index of the agent in its sweep.
      strategy: Strategy of several learners, from `strategies.make`; None for one.
    """
    tf.keras.utils.set_random_seed(config.run.seed)
    with strategies.variables(strategy):
        return learner_module.Learner(
            build_agent(config, spec, dtype, config.run.seed),
            config.learner,
            total_agent_steps=config.total_agent_steps,
            jit=jit,
            member=member,
            strategy=strategy,
        )


def unroll_signature(
    config: run_config.RunConfig, spec: types.EnvironmentSpec, agent: agents_base.Agent
) -> stored_unroll.StoredUnroll:
    """Returns the `tf.TensorSpec`s of the unrolls that the run's actors write."""
    frame_stack = config.replay.frame_stack
    step = tf.nest.map_structure(
        tf.TensorSpec.from_tensor,
        tf.nest.map_structure(
            tf.constant, observations.padding_steps(_seen_by_agent(spec, frame_stack), (1,))
        ),
    )
    state = tf.nest.map_structure(tf.TensorSpec.from_tensor, agent.initial_state(1))
    # The trace yields all outputs of the agent, without a list of them.
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
        for_sequences=config.replay.uses_sequences,
    )


def open_replay(
    config: run_config.RunConfig,
    workdir: pathlib.Path,
    signature: stored_unroll.StoredUnroll,
    member: membership.Membership | None,
    *,
    is_new: bool,
) -> client.ReplayClient:
    """Connects to the replay of a run, and starts its server if the run has its own.

    Args:
      config: Configuration of the run.
      workdir: Run directory.
      signature: Signature of an unroll.
      member: Connection to the sweep of the run; None without a sweep.
      is_new: Whether the run has no checkpoint.

    Raises:
      ValueError: If the port is in use, or a shared replay has other unrolls or another run.
    """
    if member and member.replay_address:
        queue = schemes_base.queue_of(member.name)
        replay = connection.ReplayConnection(member.replay_address, config.replay, queue)
        replay.check(signature)
        replay.start_polling()
        return client.ReplayClient(replay)
    if config.replay.address:
        return client.connect_external(config.replay, signature, workdir, is_new=is_new)
    checkpoint = workdir / run_directory.REPLAY_CHECKPOINT
    served = server.ReplayServer(config.replay, signature, checkpoint, config.run.replay_port)
    served.guard_memory()
    if not is_new and config.replay.replay_table and not served.is_restored:
        logging.warning("Found no usable replay checkpoint: the run resumes with empty replay")
    return client.ReplayClient(served.connect(), served)


def make_batches(
    config: run_config.RunConfig,
    replay: client.ReplayClient,
    signature: stored_unroll.StoredUnroll,
    learner: learner_module.Learner,
    spec: types.EnvironmentSpec,
) -> batch_sources.BatchSource:
    """Starts fetching the batches of one of a run's learners, which have equal weights.

    Args:
      config: Configuration of the run.
      replay: The learner's view of replay.
      signature: Signature of an unroll.
      learner: The learner.
      spec: Spec of the environment, which the values of unrolls must fit.
    """
    # Equal for all learners; a resumed run continues with other random numbers.
    seed = config.run.seed, int(learner.counters.agent_steps.numpy())
    check = unroll_check.UnrollCheck(spec)
    context = schemes_base.LearnerContext(replay, signature, learner.agent, seed, check)
    return config.share_of_replay.make_batches(context)

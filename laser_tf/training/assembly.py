"""Builds agents, learners, replay and batches from the configuration of a run."""

import re

import tensorflow as tf

from laser_tf import errors, observations, types, user_code
from laser_tf.agents import base as agents_base
from laser_tf.agents import registry
from laser_tf.host import hardware
from laser_tf.replay import batch_sources, client, stored_unroll, unroll_check
from laser_tf.replay import turn_taking as turn_taking_module
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.training import learner as learner_module
from laser_tf.training import run_config, strategies


def build_agent(
    config: run_config.RunConfig,
    spec: types.EnvironmentSpec,  # images are single frames
    dtype: str,
    seed: int,
    *,
    is_evaluating: bool = False,
    actor: int = 0,
    actors: int = 1,
) -> agents_base.Agent:
    """Creates an agent with its variables; raises UserError if they do not fit into memory."""
    context = agents_base.AgentContext(
        spec=_seen_by_agent(spec, config.replay.frame_stack),
        frame_stack=config.replay.frame_stack,
        dtype=dtype,
        seed=seed,
        burn_in=config.replay.burn_in,
        is_evaluating=is_evaluating,
        actor_index=actor,
        num_actors=actors,
    )
    try:
        agent = registry.make(config.agent, context)
        if user_code.is_path(config.agent.name):
            replay, steps = config.replay, config.replay.steps_per_entry
            parts = steps // replay.unroll_length if replay.uses_sequences else 0
            agent.create_variables(context.spec, steps, parts)
        return agent
    except tf.errors.ResourceExhaustedError as error:
        shape = re.search(r"shape\[[\d,]*\]", str(error))
        tensor = f" (a tensor of {shape[0]})" if shape else ""
        raise errors.UserError(
            f"the network of {config.agent.name} must fit into memory, but "
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
    member_index: int = 0,
    strategy: tf.distribute.Strategy | None = None,
) -> learner_module.Learner:
    """Creates the learner of a run with random weights; see `build_agent`."""
    tf.keras.utils.set_random_seed(config.run.seed)
    with strategies.variables(strategy):
        return learner_module.Learner(
            build_agent(config, spec, dtype, config.run.seed),
            config.learner,
            total_agent_steps=config.total_agent_steps,
            jit=jit,
            member_index=member_index,
            strategy=strategy,
            with_priorities=config.replay.uses_priorities,
            stages_batches=strategy is None and hardware.accelerator() is not None,
        )


def unroll_signature(
    config: run_config.RunConfig, spec: types.EnvironmentSpec, agent: agents_base.Agent
) -> stored_unroll.StoredUnroll:
    """Returns the `tf.TensorSpec`s of the unrolls that the run's actors write."""
    frame_stack = config.replay.frame_stack
    blank = observations.padding_steps(_seen_by_agent(spec, frame_stack), (1,))
    inputs = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec(leaf.shape, leaf.dtype), (blank, agent.initial_state(1))
    )
    # The trace yields all outputs of the agent, without a list of them.
    traced = tf.function(agent.act, autograph=False).get_concrete_function(*inputs)
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


def make_batches(
    config: run_config.RunConfig,
    replay: client.ReplayClient,
    signature: stored_unroll.StoredUnroll,
    learner: learner_module.Learner,
    spec: types.EnvironmentSpec,
    turn_taking: turn_taking_module.TurnTaking | None = None,
) -> batch_sources.BatchSource:
    """Starts fetching the batches of one of a run's learners."""
    # Equal for all learners; a resumed run continues with other random numbers.
    seed = config.run.seed, int(learner.counters.agent_steps.numpy())
    check = unroll_check.UnrollCheck(spec)
    context = schemes_base.LearnerContext(
        replay, signature, learner.agent, seed, check, learner.stage, turn_taking
    )
    return config.share_of_replay.make_batches(context)

"""Measurements of launch.benchmark: a whole run, and each of its parts alone."""

import dataclasses
import pathlib
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from laser_tf import array_function
from laser_tf.environments import factory
from laser_tf.replay import dataset, episode_replay, server, writers
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.replay.schemes import replay_only
from laser_tf.training import actor, assembly, run_config, strategies, training
from laser_tf.workdir import run_directory


def end_to_end(
    config: run_config.RunConfig, workdir: pathlib.Path, seconds: float
) -> dict[str, float]:
    """Trains for `2 * seconds` in a new directory and measures the second half."""
    endless = dataclasses.replace(config.run, env_frames=10**12, checkpoint_minutes=500_000.0)
    config = dataclasses.replace(config, run=endless)
    strategy = strategies.make(config.learner)
    run_directory.open_workdir(workdir, dataclasses.asdict(config), {})
    spec = factory.environment_spec(config.environment)
    run = training.Training(config, workdir, spec, strategy=strategy)
    stop = threading.Event()
    counts = []  # of agent steps, updates, busy seconds and seconds

    def measure() -> None:
        for _ in range(2):
            time.sleep(seconds)
            counters = run.counters
            steps, updates = counters.agent_steps.numpy(), counters.learner_updates.numpy()
            counts.append((steps, updates, run.learner_seconds, time.monotonic()))
        stop.set()

    threading.Thread(target=measure, daemon=True).start()
    run.run(stop.is_set, lambda _: None)
    steps, updates, busy, passed = np.subtract(counts[1], counts[0])
    return {
        "agent_steps_per_second": round(steps / passed, 1),
        "learner_updates_per_second": round(updates / passed, 2),
        "learner_busy_fraction": round(busy / passed, 3),
    }


def parts_alone(
    config: run_config.RunConfig, dtype: str, jit: bool, folder: pathlib.Path, seconds: float
) -> tuple[dict[str, float], int]:
    """Measures the parts of a run one by one, for `seconds` each, on real experience.

    Returns:
      Agent steps per second of each part, and the agent steps in a batch, including a burn-in.
    """
    replay, tables = config.replay, _paced_tables(config.replay)
    environment = factory.make_environment(config.environment, seed=1)
    spec, generator = environment.spec(), np.random.default_rng(1)
    learner = assembly.build_learner(config, spec, dtype, jit=jit)
    signature = assembly.unroll_signature(config, spec, learner.agent)
    replay_server = server.ReplayServer(tables, signature, folder)
    policy = actor.ActingPolicy(learner.agent, environment, replay.frame_stack)
    (writer,) = tables.make_writers(
        schemes_base.ActorContext(
            replay_server.connect(), signature, learner.agent, environment.task_ids
        )
    )
    steps = []
    env_output = environment.reset()
    for _ in range(tables.steps_per_entry):
        core_state = policy.core_state
        agent_output = policy(env_output)
        steps.append(writers.Step(env_output, agent_output, core_state, 0))
        env_output = environment.step(agent_output.action)

    def write() -> None:
        for step in steps:
            writer.add(step, lambda: False)
        writer.wait(lambda: False)

    def pace(call: Callable[[], Any], agent_steps: int) -> float:
        return agent_steps * _calls_per_second(call, seconds)

    num_envs, batch_steps = environment.num_envs, tables.batch_size * tables.steps_per_entry
    alone = {
        "environment": pace(
            lambda: environment.step(environment.random_actions(generator)), num_envs
        ),
        "inference": pace(lambda: policy(env_output), num_envs),
        "writing": pace(write, num_envs * len(steps)),
    }
    batches = iter(dataset.replayed_batches(replay_server.address, tables))
    next_batch = array_function.ArrayFunction(batches.get_next)
    alone["sampling"] = pace(next_batch, batch_steps)
    is_online = np.arange(replay.batch_size) < replay.online_entries
    batch = next_batch()._replace(is_online=is_online)
    alone["update"] = pace(lambda: learner.update(batch), batch_steps)
    if replay.recomputes_states:
        count = replay.replayed_entries
        unrolls = tf.nest.map_structure(lambda column: column[:count], next_batch().unrolls)
        next_state = episode_replay.state_recomputation(learner.agent, count)
        # In agent steps of the batch with its online entries.
        alone["recomputing_states"] = pace(lambda: next_state(unrolls), batch_steps)
    replay_server.stop()
    environment.close()
    return alone, batch_steps


def _calls_per_second(call: Callable[[], Any], seconds: float) -> float:
    for _ in range(3):  # compilation and caches
        call()
    calls, start = 0, time.monotonic()
    while time.monotonic() - start < seconds:
        call()
        calls += 1
    return calls / (time.monotonic() - start)


def _paced_tables(scheme: schemes_base.ReplayScheme) -> replay_only.ReplayOnly:
    """Returns a scheme whose tables neither block writers nor run empty, with equal entries."""
    capacity = max(scheme.capacity, 100_000)
    queue_capacity = 10**9  # Nothing takes the counts out of the queue.
    if isinstance(scheme, replay_only.ReplayOnly):
        return dataclasses.replace(scheme, capacity=capacity, queue_capacity=queue_capacity)
    return replay_only.ReplayOnly(
        unroll_length=scheme.unroll_length,
        frame_stack=scheme.frame_stack,
        batch_size=scheme.batch_size,
        capacity=capacity,
        queue_capacity=queue_capacity,
    )

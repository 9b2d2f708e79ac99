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


class Parts:
    """The parts of a run, which are measured one by one on real experience."""

    def __init__(
        self,
        config: run_config.RunConfig,
        dtype: str,
        jit: bool,
        replay_folder: pathlib.Path,
        seconds: float,
    ):
        """Creates all parts and acts for one entry of a batch.

        Args:
          config: Configuration of the run.
          dtype: Compute dtype, "float32" or "bfloat16".
          jit: Whether XLA compiles the update.
          replay_folder: New directory of the Reverb server.
          seconds: Duration of each measurement.
        """
        self._seconds = seconds
        self._config = config
        self._environment = factory.make_environment(config.environment, seed=1)
        spec = self._environment.spec()
        self._learner = assembly.build_learner(config, spec, dtype, jit=jit)
        signature = assembly.unroll_signature(config, spec, self._learner.agent)
        self._tables = _paced_tables(config.replay)
        self._server = server.ReplayServer(self._tables, signature, replay_folder)
        self._policy = actor.ActingPolicy(
            self._learner.agent, self._environment, config.replay.frame_stack
        )
        (self._writer,) = self._tables.make_writers(
            schemes_base.ActorContext(
                self._server.connect(),
                signature,
                self._learner.agent,
                self._environment.task_ids,
            )
        )
        self._steps = []
        self._env_output = self._environment.reset()
        for _ in range(self._tables.steps_per_entry):
            core_state = self._policy.core_state
            agent_output = self._policy(self._env_output)
            self._steps.append(writers.Step(self._env_output, agent_output, core_state, 0))
            self._env_output = self._environment.step(agent_output.action)

    def environment_pace(self) -> float:
        """Steps the environments with random actions."""
        environment, generator = self._environment, np.random.default_rng(1)
        return environment.num_envs * self._calls_per_second(
            lambda: environment.step(environment.random_actions(generator))
        )

    def inference_pace(self) -> float:
        """Computes the actions of all environments at once."""
        return self._environment.num_envs * self._calls_per_second(
            lambda: self._policy(self._env_output)
        )

    def writing_pace(self) -> float:
        """Inserts steps into replay."""

        def write() -> None:
            for step in self._steps:
                self._writer.add(step, lambda: False)
            self._writer.wait(lambda: False)

        return self._environment.num_envs * len(self._steps) * self._calls_per_second(write)

    def sampling_pace(self) -> float:
        """Samples batches from replay."""
        batches = dataset.replayed_batches(self._server.address, self._tables)
        self._next_batch = array_function.ArrayFunction(iter(batches).get_next)
        return self.steps_per_batch * self._calls_per_second(self._next_batch)

    def update_pace(self) -> float:
        """Takes gradient steps on one batch."""
        is_online = np.arange(self._config.replay.batch_size) < self._config.replay.online_entries
        batch = self._next_batch()._replace(is_online=is_online)
        return self.steps_per_batch * self._calls_per_second(lambda: self._learner.update(batch))

    @property
    def steps_per_batch(self) -> int:
        """Agent steps in a batch, including a burn-in."""
        return self._tables.batch_size * self._tables.steps_per_entry

    def recomputation_pace(self) -> float:
        """Recomputes core states of replayed entries; in agent steps of the whole batch."""
        replay = self._config.replay
        unrolls = tf.nest.map_structure(
            lambda column: column[: replay.replayed_entries], self._next_batch().unrolls
        )
        next_state = episode_replay.state_recomputation(
            self._learner.agent, replay.replayed_entries
        )
        return self.steps_per_batch * self._calls_per_second(lambda: next_state(unrolls))

    def _calls_per_second(self, call: Callable[[], Any]) -> float:
        for _ in range(3):  # compilation and caches
            call()
        calls, start = 0, time.monotonic()
        while time.monotonic() - start < self._seconds:
            call()
            calls += 1
        return calls / (time.monotonic() - start)

    def close(self) -> None:
        """Stops the server and the environments."""
        self._server.stop()
        self._environment.close()


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

"""Measurements of launch.benchmark: a whole run, and each of its parts alone."""

import dataclasses
import pathlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from laser_tf import array_function
from laser_tf.environments import factory, multi_task
from laser_tf.host import processor_time
from laser_tf.replay import dataset, episode_replay, server, stored_unroll, writers
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.replay.schemes import replay_only
from laser_tf.training import actor, assembly, run_config, strategies, training
from laser_tf.workdir import run_directory
from launch import cost_model

_GROWTH = 4  # Size of a large batch, in batches of the configuration.


def end_to_end(
    config: run_config.RunConfig, workdir: pathlib.Path, seconds: float
) -> cost_model.EndToEnd:
    """Trains for about `2 * seconds` in a new directory and measures the second half.

    Both halves end with an update, so that the measured agent steps fit the measured updates. There
    is no warm-up of replay, in which an agent step costs less.
    """
    endless = dataclasses.replace(config.run, env_frames=10**12, checkpoint_minutes=500_000.0)
    replay = config.replay
    if isinstance(replay, replay_only.ReplayOnly):
        replay = dataclasses.replace(replay, warm_up=0)
    config = dataclasses.replace(config, run=endless, replay=replay)
    strategy = strategies.make(config.learner)
    run_directory.open_workdir(workdir, dataclasses.asdict(config), {})
    spec = factory.environment_spec(config.environment)
    run = training.Training(config, workdir, spec, strategy=strategy)
    marks: list[tuple[float, ...]] = []  # the fields of `EndToEnd` since the start
    last, frames = time.monotonic(), 0

    def should_stop() -> bool:  # Polled before each update.
        nonlocal last, frames
        now, has_updated = time.monotonic(), run.env_frames != frames
        frames = run.env_frames
        if has_updated and now - last >= seconds:
            counters = run.counters
            steps, updates = counters.agent_steps.numpy(), counters.learner_updates.numpy()
            marks.append((now, processor_time.seconds(), steps, updates, run.learner_seconds))
            last = now
        return len(marks) >= 2

    run.run(should_stop, lambda _: None)
    return cost_model.EndToEnd(*np.subtract(marks[1], marks[0]).tolist())


class Parts:
    """The parts of a run, measured alone one by one, for `seconds` each, on real experience."""

    def __init__(
        self,
        config: run_config.RunConfig,
        dtype: str,
        jit: bool,
        folder: pathlib.Path,
        seconds: float,
    ):
        """Creates environments, a learner and a replay server, which `close` ends."""
        self._config = config
        self._seconds = seconds
        self._tables = _paced_tables(config.replay)
        self._environment = factory.make_environment(config.environment, seed=1)
        spec = self._environment.spec()
        self._make_learner = lambda: assembly.build_learner(config, spec, dtype, jit=jit)
        self._learner = self._make_learner()
        self._signature = assembly.unroll_signature(config, spec, self._learner.agent)
        self._server = server.ReplayServer(self._tables, self._signature, folder)

    def close(self) -> None:
        """Ends the environments and the server."""
        self._server.stop()
        self._environment.close()

    def measure(self) -> tuple[dict[str, cost_model.Part], dict[str, cost_model.Call]]:
        """Returns the parts, and the parts measured with a larger batch, too."""
        acting, inference = self._acting()
        learning, update = self._learning()
        return acting | learning, {"update": update, "inference": inference}

    def _acting(self) -> tuple[dict[str, cost_model.Part], cost_model.Call]:
        environment, agent = self._environment, self._learner.agent
        generator, num_envs = np.random.default_rng(1), environment.num_envs
        policy = actor.ActingPolicy(agent, environment, self._config.replay.frame_stack)
        write, written_steps = self._writing(policy)
        env_output = environment.reset()

        def step() -> None:
            environment.step(environment.random_actions(generator))

        # Only its specs are used.
        many = multi_task.MultiTask(environment.tasks[:1] * _GROWTH, [environment] * _GROWTH)
        larger = actor.ActingPolicy(agent, many, self._config.replay.frame_stack)
        outputs = _repeated(env_output)
        timings = self._alternate(lambda: policy(env_output), lambda: larger(outputs))
        parts = {
            "environment": cost_model.Part(self._time(step), num_envs),
            "inference": cost_model.Part(self._time(lambda: policy(env_output)), num_envs),
            "writing": cost_model.Part(self._time(write), written_steps),
        }
        return parts, cost_model.Call("environment", (num_envs, many.num_envs), timings)

    def _writing(self, policy: actor.ActingPolicy) -> tuple[Callable[[], None], int]:
        """Returns a function that writes an entry of each environment, and its agent steps."""
        environment, tables = self._environment, self._tables
        (writer,) = tables.make_writers(
            schemes_base.ActorContext(
                self._server.connect(),
                self._signature,
                self._learner.agent,
                environment.task_ids,
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

        # A scheme of whole episodes has a second writer, of the unrolls of the queue.
        writers_per_actor = 2 if self._config.replay.recomputes_states else 1
        return write, environment.num_envs * len(steps) // writers_per_actor

    def _learning(self) -> tuple[dict[str, cost_model.Part], cost_model.Call]:
        replay, tables, learner = self._config.replay, self._tables, self._learner
        batches = iter(dataset.replayed_batches(self._server.address, tables))
        next_batch = array_function.ArrayFunction(batches.get_next)
        parts = {"sampling": self._time(next_batch)}
        is_online = np.arange(replay.batch_size) < replay.online_entries
        batch: stored_unroll.Batch = next_batch()._replace(is_online=is_online)
        parts["update"] = self._time(lambda: learner.update(batch))
        if replay.recomputes_states:
            count = replay.replayed_entries
            unrolls = tf.nest.map_structure(lambda column: column[:count], batch.unrolls)
            next_state = episode_replay.state_recomputation(learner.agent, count)
            parts["recomputing_states"] = self._time(lambda: next_state(unrolls))
        larger = self._make_learner()  # A learner has one graph, for one size of batch.
        large_batch = _repeated(batch._replace(new_steps=()))._replace(new_steps=batch.new_steps)
        timings = self._alternate(lambda: learner.update(batch), lambda: larger.update(large_batch))
        entry = "sequence" if replay.uses_sequences else "unroll"
        call = cost_model.Call(entry, (replay.batch_size, _GROWTH * replay.batch_size), timings)
        steps = replay.mean_steps_per_update
        return {name: cost_model.Part(time_, steps) for name, time_ in parts.items()}, call

    def _time(self, call: Callable[[], Any]) -> cost_model.Timing:
        """Returns the mean time of a call."""
        _call(call, self._seconds, max_calls=3)  # compilation and caches
        wall, processor = time.monotonic(), processor_time.seconds()
        calls = _call(call, self._seconds)
        return cost_model.Timing(
            (time.monotonic() - wall) / calls, (processor_time.seconds() - processor) / calls
        )

    def _alternate(self, *calls: Callable[[], Any]) -> tuple[cost_model.Timing, cost_model.Timing]:
        """Returns median times of two calls that take turns, so that both see the same machine."""
        seconds = self._seconds / 2
        for call in calls:
            _call(call, seconds, max_calls=3)
        times: list[list[tuple[float, float]]] = [[] for _ in calls]

        def take_turns() -> None:
            for call, record in zip(calls, times, strict=True):
                wall, processor = time.monotonic(), processor_time.seconds()
                call()
                record.append((time.monotonic() - wall, processor_time.seconds() - processor))

        _call(take_turns, seconds)
        small, large = (cost_model.Timing(*np.median(record, axis=0)) for record in times)
        return small, large


def _call(call: Callable[[], Any], seconds: float, max_calls: float = float("inf")) -> int:
    """Calls a function at least once, for some seconds, and returns the number of calls."""
    calls, end = 0, time.monotonic() + seconds
    while not calls or (calls < max_calls and time.monotonic() < end):
        call()
        calls += 1
    return calls


def _repeated(nest: Any) -> Any:
    """Returns arrays with each entry of axis 0 several times in a row."""
    return tf.nest.map_structure(lambda leaf: np.repeat(leaf, _GROWTH, axis=0), nest)


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

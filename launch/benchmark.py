"""Measures agent steps per second: of each part alone, and of all of them together.

python -m launch.benchmark
python -m launch.benchmark --config=configs/laser_atari.py --seconds=60
"""

from laser_tf.runtime import private_network, versions
from launch import interruption

if __name__ == "__main__":
    interruption.before_imports()
    versions.check()
    private_network.enter()

import dataclasses
import io
import json
import pathlib
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from absl import flags

from laser_tf.environments import factory, faults
from laser_tf.replay import dataset, replay_config, server
from laser_tf.runtime import (
    actor,
    array_function,
    assembly,
    checkpointing,
    hardware,
    progress,
    run_config,
    training,
)
from launch import command_line

_CONFIG = command_line.define_config("configs/impala_atari.py")
_SECONDS = flags.DEFINE_float("seconds", 30.0, "to measure end to end, after as long a warm-up")
_PART_SECONDS = flags.DEFINE_float("part_seconds", 5.0, "to measure each part alone")


def main() -> None:
    """Measures and prints one JSON object."""
    config = run_config.parse(command_line.config_values(_CONFIG))
    dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
    jit, _ = hardware.choose_jit_compile(config.learner.jit_compile)
    setting = {
        "task": config.environment.task,
        "torso": config.agent.torso,
        "core": config.agent.core,
        "compute_dtype": dtype,
        "num_envs": config.environment.num_envs,
        "steps_per_row": config.replay.steps_per_row,
        "batch_size": config.replay.batch_size,
        "replayed_rows": config.replay.replay_rows,
    }
    with tempfile.TemporaryDirectory() as folder:
        together = end_to_end(config, pathlib.Path(folder) / "run")
        parts = Parts(config, dtype, jit, pathlib.Path(folder) / "replay")
        alone = {
            "environment": parts.environment_pace(),
            "inference": parts.inference_pace(),
            "writing": parts.writing_pace(),
            "sampling": parts.sampling_pace(),
            "update": parts.update_pace(),
        }
        if config.replay.replay_table == replay_config.EPISODES:
            alone["recomputing_states"] = parts.recomputation_pace()
        updates = alone["update"] / parts.steps_per_batch
        parts.close()
    alone = {name: round(pace) for name, pace in alone.items()}
    result = {
        **setting,
        "agent_steps_per_second_alone": alone,
        "learner_updates_per_second_alone": round(updates, 3),
        "end_to_end": together,
    }
    print(json.dumps(result, indent=2))


def end_to_end(config: run_config.RunConfig, workdir: pathlib.Path) -> dict[str, float]:
    """Trains for twice `--seconds` and measures the second half."""
    endless = dataclasses.replace(config.run, env_frames=10**12, checkpoint_minutes=10**6)
    config = dataclasses.replace(config, run=endless)
    checkpointing.open_workdir(workdir, dataclasses.asdict(config), {})
    run = training.Training(config, workdir)
    stop = threading.Event()
    result = {}

    def measure() -> None:
        time.sleep(_SECONDS.value)
        steps, updates = int(run.counters.agent_steps), int(run.counters.learner_updates)
        busy, start = run.learner_seconds, time.monotonic()
        time.sleep(_SECONDS.value)
        seconds = time.monotonic() - start
        result["agent_steps_per_second"] = round(
            (int(run.counters.agent_steps) - steps) / seconds, 1
        )
        result["learner_updates_per_second"] = round(
            (int(run.counters.learner_updates) - updates) / seconds, 2
        )
        result["learner_busy_fraction"] = round((run.learner_seconds - busy) / seconds, 3)
        stop.set()

    threading.Thread(target=measure, daemon=True).start()
    with progress.ProgressDisplay(10**12, "benchmark", io.StringIO()) as display:
        run.run(stop, display)
    return result


class Parts:
    """The parts of a run, each to be timed by itself, on real experience."""

    def __init__(
        self, config: run_config.RunConfig, dtype: str, jit: bool, replay_folder: pathlib.Path
    ):
        """Creates all parts and plays one unroll."""
        self._config = config
        self._environment = factory.make_environment(config.environment, seed=1)
        self._learner = assembly.build_learner(config, self._environment, dtype, jit=jit)
        signature = assembly.unroll_signature(config, self._environment, self._learner.agent)
        # Writing and sampling are timed on replay alone, which neither blocks nor runs empty,
        # whatever the configuration mixes.
        self._tables = dataclasses.replace(
            config.replay,
            new_steps=config.replay.steps_per_update,
            core_state="stored",
            capacity=max(config.replay.capacity, 100_000),
            queue_capacity=10**9,  # of the counts, which nobody takes out
        )
        self._replay = server.EmbeddedReplay(self._tables, signature, replay_folder)
        self._policy = actor.ActingPolicy(
            self._learner.agent, self._environment, config.replay.frame_stack
        )
        (self._recorder,) = assembly.make_recorders(
            self._tables,
            self._replay,
            signature,
            self._learner.agent,
            task_ids=self._environment.task_ids,
            member=0,
            max_unrolls_per_episode=config.max_unrolls_per_episode,
        )
        self._play()

    def _play(self) -> None:
        """Fills as many rows as a row of the batch has."""
        self._rows = []
        self._env_output = self._environment.reset()
        for _ in range(self._tables.steps_per_row):
            core_state = self._policy.core_state
            agent_output = self._policy(self._env_output)
            self._rows.append((self._env_output, agent_output, core_state))
            self._env_output = self._environment.step(agent_output.action)

    def environment_pace(self) -> float:
        """Stepping with random actions."""
        environment, generator = self._environment, np.random.default_rng(1)
        return environment.num_envs * _calls_per_second(
            lambda: environment.step(environment.random_actions(generator))
        )

    def inference_pace(self) -> float:
        """Choosing actions for all environments at once."""
        return self._environment.num_envs * _calls_per_second(
            lambda: self._policy(self._env_output)
        )

    def writing_pace(self) -> float:
        """Cutting rows and inserting them in replay."""

        def write() -> None:
            for row in self._rows:
                self._recorder.add(*row, 0, lambda: False)
            self._recorder.wait(lambda: False)

        return self._environment.num_envs * len(self._rows) * _calls_per_second(write)

    def sampling_pace(self) -> float:
        """Drawing batches from replay."""
        batches = dataset.replayed_batches(self._replay.address, self._tables)
        self._next_batch = array_function.ArrayFunction(iter(batches).get_next)
        return self.steps_per_batch * _calls_per_second(self._next_batch)

    def update_pace(self) -> float:
        """Taking gradient steps on one batch."""
        is_online = np.arange(self._config.replay.batch_size) < self._config.replay.online_rows
        batch = self._next_batch()._replace(is_online=is_online)
        return self.steps_per_batch * _calls_per_second(lambda: self._learner.update(batch))

    @property
    def steps_per_batch(self) -> int:
        """Agent steps in a batch, those of a burn-in included."""
        return self._tables.batch_size * self._tables.steps_per_row

    def recomputation_pace(self) -> float:
        """Recomputing the core states of the replayed rows, in agent steps of the whole batch."""
        replay = self._config.replay
        unrolls = tf.nest.map_structure(
            lambda column: column[: replay.replay_rows], self._next_batch().unrolls
        )
        next_state = assembly.state_recomputation(self._learner.agent, replay)
        return self.steps_per_batch * _calls_per_second(lambda: next_state(unrolls))

    def close(self) -> None:
        """Ends the server and the games."""
        self._replay.stop()
        self._environment.close()


def _calls_per_second(call: Callable[[], Any]) -> float:
    for _ in range(3):  # compilation and caches
        call()
    calls, start = 0, time.monotonic()
    while time.monotonic() - start < _PART_SECONDS.value:
        call()
        calls += 1
    return calls / (time.monotonic() - start)


if __name__ == "__main__":
    command_line.run(
        main,
        (ValueError, ImportError, checkpointing.WorkdirError, faults.EnvironmentFailedError),
    )

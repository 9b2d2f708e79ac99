"""Measures agent steps per second: of each part alone, and of all of them together.

python -m launch.benchmark
python -m launch.benchmark --config=configs/laser_atari.py --seconds=60
"""

from laser_tf.runtime import private_network, versions

if __name__ == "__main__":
    versions.check()
    private_network.enter()

import json
import pathlib
import tempfile
import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from absl import flags
from ml_collections import config_flags

from launch import command_line
from laser_tf.environments import base, factory
from laser_tf.replay import dataset, server, stored_unroll, writer
from laser_tf.runtime import actor, hardware, run_config, training

_CONFIG = config_flags.DEFINE_config_file("config", "configs/impala_atari.py", "a file of configs/")
_SECONDS = flags.DEFINE_float("seconds", 30.0, "to measure end to end, after warming up")
_PART_SECONDS = flags.DEFINE_float("part_seconds", 5.0, "to measure each part alone")


def main() -> None:
    """Measures and prints one JSON object."""
    config = run_config.parse(command_line.config_values(_CONFIG))
    dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
    jit, _ = hardware.choose_jit_compile(config.learner.jit_compile)
    parts = Parts(config, dtype, jit)
    alone = {
        "environment": parts.environment_pace(),
        "inference": parts.inference_pace(),
        "writing": parts.writing_pace(),
        "sampling": parts.sampling_pace(),
        "update": parts.update_pace(),
    }
    parts.close()
    print(
        json.dumps(
            {
                "task": config.environment.task,
                "torso": config.agent.torso,
                "compute_dtype": dtype,
                "unroll_length": config.replay.unroll_length,
                "batch_size": config.replay.batch_size,
                "replay_fraction": config.replay.replay_fraction,
                "alone_agent_steps_per_second": {name: round(v) for name, v in alone.items()},
                "end_to_end": end_to_end(config),
            },
            indent=2,
        )
    )


class Parts:
    """The parts of a run, each to be timed by itself."""

    def __init__(self, config: run_config.RunConfig, dtype: str, jit: bool):
        self._config = config
        self._folder = tempfile.TemporaryDirectory()
        self._environment = factory.make_environment(config.environment, seed=1)
        self._learner = training.build_learner(config, self._environment, dtype, jit=jit)
        self._signature = training.unroll_signature(config, self._environment, self._learner.agent)
        self._replay = server.EmbeddedReplay(
            config.replay, self._signature, pathlib.Path(self._folder.name) / "replay"
        )
        self._policy = actor.ActingPolicy(self._learner.agent, config.replay.frame_stack)
        self._buffer = stored_unroll.UnrollBuffer(
            self._signature, self._environment.num_envs, config.replay.frame_stack
        )
        self._play_unroll()

    def _play_unroll(self) -> None:
        """Fills the buffer with real experience, so that it compresses as in a run."""
        state = self._policy.initial_state(self._environment.num_envs)
        self._env_output = self._environment.reset()
        self._buffer.write_core_state(0, state)
        for row in range(self._buffer.last_row + 1):
            self._buffer.write_environment(row, self._env_output)
            agent_output, state = self._policy(*self._buffer.window(row), self._env_output, state)
            self._buffer.write_agent(row, agent_output)
            self._env_output = self._environment.step(agent_output.action)

    def environment_pace(self) -> float:
        """Stepping with random actions."""
        num_envs = self._environment.num_envs
        num_actions = self._environment.action_spec().num_values
        actions = np.random.default_rng(1).integers(num_actions, size=num_envs, dtype=np.int32)
        return num_envs * _calls_per_second(lambda: self._environment.step(actions))

    def inference_pace(self) -> float:
        """Choosing actions for all environments at once."""
        state = self._policy.initial_state(self._environment.num_envs)
        window = self._buffer.window(self._buffer.last_row)
        return self._environment.num_envs * _calls_per_second(
            lambda: self._policy(*window, self._env_output, state)
        )

    def writing_pace(self) -> float:
        """Inserting unrolls in a replay table that is never sampled."""
        target = writer.UnrollWriter(self._replay.client, to_replay=True, to_learner=False)

        def write() -> None:
            for index in range(self._environment.num_envs):
                target.write(self._buffer.unroll(index, 0), lambda: False)
            target.wait(lambda: False)

        steps = self._environment.num_envs * self._config.replay.unroll_length
        return steps * _calls_per_second(write)

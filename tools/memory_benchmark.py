"""Measures replay's memory for an agent step of real play, and whether a run grows.

python -m tools.memory_benchmark --steps=200000
"""

import gc
import json
import os
import pathlib
import tempfile

import numpy as np
import psutil
from absl import app, flags

from configs import laser
from laser_tf.agents import base as agents_base
from laser_tf.environments import base as env_base
from laser_tf.environments import factory
from laser_tf.replay import connection, server, stored_unroll, writers
from laser_tf.training import actor, assembly, run_config

_STEPS = flags.DEFINE_integer("steps", 200_000, "agent steps to store")
_TASK = flags.DEFINE_string("task", "pong", "an Atari game")


def main(_: list[str]) -> None:
    """Fills a replay table with random play and prints its bytes an agent step."""
    values = laser.get_config("atari").to_dict()
    values["environment"]["task"] = _TASK.value
    values["replay"].update(capacity=10 * _STEPS.value, replay_fraction=0.5)
    config = run_config.parse(values)
    environment = factory.make_environment(config.environment, seed=1)
    agent = assembly.build_agent(config, environment.spec(), "float32", seed=1)
    signature = assembly.unroll_signature(config, environment.spec(), agent)
    with tempfile.TemporaryDirectory() as folder:
        replay = server.ReplayServer(config.replay, signature, pathlib.Path(folder))
        print(json.dumps(_fill(config, environment, agent, signature, replay.connect()), indent=2))
        replay.stop()


def _fill(
    config: run_config.RunConfig,
    environment: env_base.BatchedEnvironment,
    agent: agents_base.Agent,
    signature: stored_unroll.StoredUnroll,
    replay: connection.ReplayConnection,
) -> dict[str, float]:
    num_envs = environment.num_envs
    policy = actor.ActingPolicy(agent, environment, config.replay.frame_stack)
    buffer = writers.UnrollBuffer(signature, environment.task_ids)
    target = writers.UnrollStream(replay, ["replay"])
    env_output = environment.reset()
    steps, start = 0, None
    while steps < _STEPS.value:
        for _ in range(0 if steps == 0 else 1, buffer.last_step + 1):
            core_state = policy.core_state
            agent_output = policy(env_output)
            buffer.write(writers.Step(env_output, agent_output, core_state, 0))
            env_output = environment.step(agent_output.action)
        for index in range(num_envs):
            target.write([buffer.unroll(index, 0)], lambda: False)
        target.wait(lambda: False)
        steps += num_envs * buffer.last_step
        if start is None and steps >= _STEPS.value // 10:  # allocators have warmed up
            start = steps, _resident_bytes()
    stored = steps - start[0]
    return {
        "task": _TASK.value,
        "agent_steps": stored,
        "bytes_per_agent_step": round((_resident_bytes() - start[1]) / stored, 1),
        "uncompressed_bytes_per_agent_step": int(
            np.prod(signature.env_output.observation.shape) / config.replay.unroll_length
        ),
    }


def _resident_bytes() -> int:
    gc.collect()
    return psutil.Process(os.getpid()).memory_info().rss


if __name__ == "__main__":
    app.run(main)

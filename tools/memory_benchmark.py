"""Measures the memory of replay per agent step of an Atari game.

python -m tools.memory_benchmark --steps=200000
"""

import gc
import json
import pathlib
import tempfile

from absl import app, flags

from configs import laser
from laser_tf.replay import memory, resilient_writer, server
from laser_tf.training import run_config
from tools import unrolls

_STEPS = flags.DEFINE_integer("steps", 200_000, "agent steps to store")
_TASK = flags.DEFINE_string("task", "pong", "an Atari game")


def main(_: list[str]) -> None:
    """Fills a replay table and prints its bytes per agent step."""
    values = laser.get_config("atari").to_dict()
    values["environment"]["task"] = _TASK.value
    values["replay"].update(capacity=10 * _STEPS.value, replay_fraction=0.5)
    config = run_config.parse(values)
    signature, generated = unrolls.generate(config)
    unroll_length = config.replay.unroll_length
    steps, start = 0, None
    with tempfile.TemporaryDirectory() as folder:
        replay = server.ReplayServer(config.replay, signature, pathlib.Path(folder))
        target = resilient_writer.UnrollStream(replay.connect(), {"replay": True})
        while steps < _STEPS.value:
            of_environments = next(generated)
            for unroll in of_environments:
                target.write([unroll], lambda: False)
            target.wait(lambda: False)
            steps += unroll_length * len(of_environments)
            if start is None and steps >= _STEPS.value // 10:  # Allocators have warmed up.
                start = steps, _resident_bytes()
        stored = steps - start[0]
        stored_bytes = _resident_bytes() - start[1]
        replay.stop()
    estimated = memory.reverb_unroll_bytes(signature) / unroll_length
    result = {
        "task": _TASK.value,
        "agent_steps": stored,
        "bytes_per_agent_step": round(stored_bytes / stored, 1),
        "estimated_bytes_per_agent_step": round(estimated, 1),  # That a run logs at its start.
    }
    print(json.dumps(result, indent=2))


def _resident_bytes() -> int:
    gc.collect()
    return memory.resident_bytes()


if __name__ == "__main__":
    app.run(main)

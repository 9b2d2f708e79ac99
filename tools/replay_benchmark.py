"""Measures how many agent steps a second a replay server takes and gives until it saturates.

python -m tools.replay_benchmark
python -m tools.replay_benchmark --writers=1,2,4,8 --samplers_per_writer=1

The server and each writer and sampler are processes; unrolls are Atari's (84x84, T = 20), of noise
that compresses as real frames do.
"""

import json
import multiprocessing
import pathlib
import tempfile
import time
from multiprocessing import queues, synchronize
from typing import Any

import numpy as np
import psutil
import reverb
import tensorflow as tf
import tree
from absl import app, flags
from dm_env import specs

from laser_tf import observations, types
from laser_tf.replay import connection, dataset, resilient_writer, server, stored_unroll
from laser_tf.replay.schemes import mixed

_WRITERS = flags.DEFINE_list("writers", ["1", "2", "4", "8"], "numbers of writing processes")
_SAMPLERS = flags.DEFINE_integer("samplers_per_writer", 1, "sampling processes per writer")
_SECONDS = flags.DEFINE_float("seconds", 10.0, "seconds of each measurement")

_T = 20
_NOISY_ROWS = 6  # of 84: about 0.5 KB an agent step compressed, as Pong has
_CAPACITY = 10_000 * _T


def main(_: list[str]) -> None:
    """Prints a JSON object for each number of processes."""
    context = multiprocessing.get_context("spawn")
    for num_writers in map(int, _WRITERS.value):
        print(json.dumps(_measure(context, num_writers)), flush=True)


def _measure(context: Any, num_writers: int) -> dict[str, float]:
    """Measures with so many writers and their samplers."""
    ports, stop = context.Queue(), context.Event()
    served = context.Process(target=_serve, args=(ports, stop))
    served.start()
    address = f"localhost:{ports.get(timeout=120)}"
    targets = [_write] * num_writers + [_sample] * num_writers * _SAMPLERS.value
    clients = [context.Process(target=target, args=(address, stop)) for target in targets]
    for client in clients:
        client.start()
    try:
        return {"writers": num_writers, **_rates(address, psutil.Process(served.pid))}
    finally:
        stop.set()
        for process in [*clients, served]:
            process.join(20)
            process.kill()


def _rates(address: str, served: psutil.Process) -> dict[str, float]:
    client = reverb.Client(address)

    def counts() -> np.ndarray:
        limiter = client.server_info()["replay"].rate_limiter_info
        return np.array([limiter.insert_stats.completed, limiter.sample_stats.completed])

    while not counts().all():
        time.sleep(0.5)
    time.sleep(5)  # until all processes have begun
    before, start = counts(), time.monotonic()
    busy = sum(served.cpu_times()[:2])
    time.sleep(_SECONDS.value)
    seconds = time.monotonic() - start
    written, sampled = (counts() - before) * _T / seconds
    used = sum(served.cpu_times()[:2]) - busy
    return {
        "steps_written_per_second": round(written),
        "steps_sampled_per_second": round(sampled),
        "server_cores": round(used / seconds, 2),
        "machine_busy_fraction": round(psutil.cpu_percent(1.0) / 100, 2),
    }


def _signature() -> Any:
    action = specs.DiscreteArray(6, name="action")
    spec = types.EnvironmentSpec(observations.image_spec(84, 84, 1), action, 1)
    output = types.AgentOutput(tf.TensorSpec([], tf.int32), tf.TensorSpec([6], tf.float32))
    return stored_unroll.signature(spec, output, (), unroll_length=_T, frame_stack=4)


def _serve(ports: queues.Queue, stop: synchronize.Event) -> None:
    config = mixed.Mixed(unroll_length=_T, capacity=_CAPACITY)
    with tempfile.TemporaryDirectory() as folder:
        replay = server.ReplayServer(config, _signature(), pathlib.Path(folder) / "replay")
        ports.put(replay.port)
        stop.wait()


def _write(address: str, stop: synchronize.Event) -> None:
    random = np.random.default_rng()
    unroll = tree.map_structure(
        lambda spec: np.zeros(spec.shape, spec.dtype.as_numpy_dtype), _signature()
    )
    unroll.env_output.observation[:, :_NOISY_ROWS] = random.integers(
        0, 256, unroll.env_output.observation[:, :_NOISY_ROWS].shape
    )
    replay = connection.ReplayConnection(address, mixed.Mixed())
    target = resilient_writer.UnrollStream(replay, {"replay": True})
    while not stop.is_set():
        target.write([unroll], stop.is_set)


def _sample(address: str, stop: synchronize.Event) -> None:
    batches = iter(dataset.items(address, "replay", 32, 64))
    while not stop.is_set():
        next(batches)


if __name__ == "__main__":
    app.run(main)

"""Measures how many agent steps a second replay servers take and give until they saturate.

python -m testing.benchmarks.replay_load --servers=1
python -m testing.benchmarks.replay_load --servers=2 --writers=1,2,4,8 --samplers_per_writer=1

Every server, writer and sampler is a process; unrolls are Atari's (84x84, T = 20), of noise that
compresses as real play does. Writers take turns among the servers, samplers draw from all.
"""

import json
import multiprocessing
import pathlib
import tempfile
import time
from multiprocessing import queues, synchronize

import numpy as np
import psutil
from absl import app, flags

_SERVERS = flags.DEFINE_integer("servers", 1, "replay servers")
_WRITERS = flags.DEFINE_list("writers", ["1", "2", "4", "8"], "numbers of writing processes")
_SAMPLERS = flags.DEFINE_integer("samplers_per_writer", 1, "sampling processes for each of them")
_SECONDS = flags.DEFINE_float("seconds", 10.0, "to measure, for each number of processes")

_T = 20
_NOISY_ROWS = 6  # of 84: about 0.5 KB an agent step compressed, as Pong has
_CAPACITY = 10_000 * _T


def main(_: list[str]) -> None:
    """Prints a JSON object for each number of processes."""
    context = multiprocessing.get_context("spawn")
    for writers in map(int, _WRITERS.value):
        print(json.dumps(_measure(context, _SERVERS.value, writers)), flush=True)


def _measure(context, num_servers: int, writers: int) -> dict[str, float]:
    """With so many writers and their samplers."""
    ports, stop = context.Queue(), context.Event()
    processes = [context.Process(target=_serve, args=(ports, stop)) for _ in range(num_servers)]
    for process in processes:
        process.start()
    addresses = [f"localhost:{ports.get(timeout=120)}" for _ in processes]
    servers = [psutil.Process(process.pid) for process in processes]
    for number in range(writers):
        clients = [context.Process(target=_write, args=(addresses[number % num_servers], stop))]
        clients += [
            context.Process(target=_sample, args=(addresses, stop)) for _ in range(_SAMPLERS.value)
        ]
        for client in clients:
            client.start()
        processes += clients
    try:
        return {"servers": num_servers, "writers": writers, **_rates(addresses, servers)}
    finally:
        stop.set()
        for process in processes[num_servers:] + processes[:num_servers]:
            process.join(20)
            process.kill()


def _rates(addresses: list[str], servers: list[psutil.Process]) -> dict[str, float]:
    import reverb

    clients = [reverb.Client(address) for address in addresses]

    def counts() -> np.ndarray:
        limiters = [client.server_info()["replay"].rate_limiter_info for client in clients]
        return np.array(
            [[one.insert_stats.completed, one.sample_stats.completed] for one in limiters]
        )

    while not counts().all():
        time.sleep(0.5)
    time.sleep(5)  # until all processes have begun
    before, start = counts(), time.monotonic()
    busy = [sum(server.cpu_times()[:2]) for server in servers]
    time.sleep(_SECONDS.value)
    seconds = time.monotonic() - start
    written, sampled = (counts() - before).sum(axis=0) * _T / seconds
    used = sum(sum(server.cpu_times()[:2]) for server in servers) - sum(busy)
    return {
        "steps_written_per_second": round(written),
        "steps_sampled_per_second": round(sampled),
        "server_cores": round(used / seconds, 2),
        "machine_busy_fraction": round(psutil.cpu_percent(1.0) / 100, 2),
    }


def _signature():
    from testing import fakes

    return fakes.signature(fakes.image_spec((84, 84, 1), 6), (), unroll_length=_T, frame_stack=4)


def _serve(ports: queues.Queue, stop: synchronize.Event) -> None:
    from laser_tf.replay import replay_config, server

    config = replay_config.ReplayConfig(unroll_length=_T, capacity=_CAPACITY)
    with tempfile.TemporaryDirectory() as folder:
        replay = server.ReplayServer(config, _signature(), pathlib.Path(folder) / "replay")
        ports.put(replay.port)
        stop.wait()


def _write(address: str, stop: synchronize.Event) -> None:
    import tree

    from laser_tf.replay import connection, replay_config, writer

    random = np.random.default_rng()
    unroll = tree.map_structure(
        lambda spec: np.zeros(spec.shape, spec.dtype.as_numpy_dtype), _signature()
    )
    unroll.env_output.observation[:, :_NOISY_ROWS] = random.integers(
        0, 256, unroll.env_output.observation[:, :_NOISY_ROWS].shape
    )
    replay = connection.ReplayConnection(address, replay_config.ReplayConfig())
    target = writer.UnrollWriter(replay, ["replay"])
    while not stop.is_set():
        target.write([unroll], stop.is_set)


def _sample(addresses: list[str], stop: synchronize.Event) -> None:
    from laser_tf.replay import dataset

    streams = [iter(dataset.unrolls(address, "replay", 32, 64)) for address in addresses]
    while not stop.is_set():
        for stream in streams:
            next(stream)


if __name__ == "__main__":
    app.run(main)

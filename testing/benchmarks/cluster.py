"""Measures a run on several processes: how it scales with actors, and what distribution costs.

python -m testing.benchmarks.cluster --actors=1,2,4,8,16,32 --output=results/cluster_scaling.csv
python -m testing.benchmarks.cluster --overhead --repeats=3 --output=results/cluster_overhead.csv

The first plays catch with environments that wait 20 ms in each step instead of computing and learns
on-policy, so that acting alone is the limit. The second trains Pong in one process and with one
remote actor, in turn.
"""

import contextlib
import csv
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

from absl import app, flags

from laser_tf.monitoring import tensorboard

_ACTORS = flags.DEFINE_list(
    "actors", ["1", "2", "4", "8", "16", "32"], "how many, one after another"
)
_ENVS_PER_ACTOR = flags.DEFINE_integer("envs_per_actor", 4, "environments of each actor")
_OVERHEAD = flags.DEFINE_bool("overhead", False, "compare with the one-process run instead")
_REPEATS = flags.DEFINE_integer("repeats", 3, "pairs of runs that are compared")
_SECONDS = flags.DEFINE_float("seconds", 40.0, "to measure, once warm")
_WARM_SECONDS = flags.DEFINE_float("warm_seconds", 20.0, "of learning before that")
_OUTPUT = flags.DEFINE_string("output", None, "a CSV file")

_FRAMES = "throughput/env_frames_per_second"
_BUSY = "throughput/learner_busy_fraction"
_WAITING = (
    "--config=configs/laser_catch.py",
    "--config.environment.wait_seconds=0.02",
    "--config.agent.relevance=none",
    "--config.replay.replay_fraction=0",
    "--config.replay.batch_size=16",
)
_PONG = ("--config=configs/laser_atari.py",)
_PATIENCE_SECONDS = 300.0  # for the first row of metrics


def main(_: list[str]) -> None:
    """Measures, prints a line for each run, and writes all of them."""
    rows = list(_compare() if _OVERHEAD.value else _scale())
    if _OUTPUT.value:
        with pathlib.Path(_OUTPUT.value).open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


def _scale() -> Iterator[dict[str, float]]:
    base = None
    for actors in map(int, _ACTORS.value):
        spread = (
            f"--config.cluster.actors={actors}",
            f"--config.cluster.envs_per_actor={_ENVS_PER_ACTOR.value}",
        )
        frames, busy = _measure([*_WAITING, *spread])
        base = base or frames / actors
        row = {
            "actors": actors,
            "environments": actors * _ENVS_PER_ACTOR.value,
            "agent_steps_per_second": round(frames, 1),
            "of_linear": round(frames / (actors * base), 3),
            "learner_busy_fraction": round(busy, 3),
        }
        print(row, flush=True)
        yield row


def _compare() -> Iterator[dict[str, float]]:
    for repeat in range(_REPEATS.value):
        paces = {}
        ways = [("one_process", ()), ("one_remote_actor", ("--config.cluster.actors=1",))]
        for name, arguments in ways if repeat % 2 == 0 else ways[::-1]:
            paces[name] = _measure([*_PONG, *arguments])[0]
        row = {
            "repeat": repeat,
            **{f"{name}_env_frames_per_second": round(paces[name], 1) for name, _ in ways},
            "ratio": round(paces["one_remote_actor"] / paces["one_process"], 3),
        }
        print(row, flush=True)
        yield row


def _measure(arguments: Sequence[str]) -> tuple[float, float]:
    """Medians over time of the learned env frames a second, and of the learner's busy fraction."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        workdir = pathlib.Path(folder) / "run"
        with _running(workdir, arguments) as process:
            start = None
            while start is None or time.monotonic() - start < _WARM_SECONDS.value + _SECONDS.value:
                time.sleep(1.0)
                if process.poll() is not None:
                    raise SystemExit(f"the run ended with {process.returncode}: see above")
                if start is None and _has_begun(workdir / "tensorboard"):
                    start = time.monotonic()
        rows = tensorboard.read_rows(workdir / "tensorboard")
        measured = [row for row in rows.values() if _FRAMES in row]
        warm = measured[int(_WARM_SECONDS.value // 2) :]
        return (
            statistics.median(row[_FRAMES] for row in warm),
            statistics.median(row[_BUSY] for row in warm),
        )


def _has_begun(folder: pathlib.Path) -> bool:
    # Only once there are files: TensorBoard takes an empty folder for one that was removed.
    return any(folder.glob("events*")) and tensorboard.read_scalars(folder, _FRAMES)[0].size > 0


@contextlib.contextmanager
def _running(workdir: pathlib.Path, arguments: Sequence[str]) -> Iterator[subprocess.Popen]:
    command = [
        sys.executable,
        "-m",
        "launch.train",
        f"--workdir={workdir}",
        *arguments,
        "--config.run.env_frames=100000000",
        "--config.run.metrics_seconds=2",
        "--config.run.evaluation_episodes=0",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=_PATIENCE_SECONDS)


if __name__ == "__main__":
    app.run(main)

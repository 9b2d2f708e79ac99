"""Measures a run on several processes: how it scales with actors, and what distribution costs.

python -m tools.cluster_benchmark --actors=1,2,4,8,16,32 --output=results/cluster_scaling.csv
python -m tools.cluster_benchmark --overhead --repeats=3 --output=results/cluster_overhead.csv

The first trains on-policy on catch, whose environments wait 20 ms in each step, so that acting is
the limit. The second trains Pong in one process and with one remote actor, in turn.
"""

import contextlib
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence

import pandas as pd
from absl import app, flags

from laser_tf.cluster import run_state
from laser_tf.monitoring import tensorboard

_ACTORS = flags.DEFINE_list(
    "actors", ["1", "2", "4", "8", "16", "32"], "numbers of actors, one after another"
)
_ENVS_PER_ACTOR = flags.DEFINE_integer("envs_per_actor", 4, "environments of each actor")
_OVERHEAD = flags.DEFINE_bool("overhead", False, "compare with the one-process run instead")
_REPEATS = flags.DEFINE_integer("repeats", 3, "pairs of runs that are compared")
_SECONDS = flags.DEFINE_float("seconds", 40.0, "seconds to measure, after the warm-up")
_WARM_SECONDS = flags.DEFINE_float("warm_seconds", 20.0, "seconds of the warm-up")
_OUTPUT = flags.DEFINE_string("output", None, "CSV file")

_FRAMES = "throughput/env_frames_per_second"
_BUSY = "throughput/learner_busy_fraction"
_WAITING = (
    "--config=configs/laser.py:catch",
    "--config.environment.wait_seconds=0.02",
    "--config.agent.trust_region=none",
    "--config.replay.scheme=online",
    "--config.replay.batch_size=16",
)
_PONG = ("--config=configs/laser.py:atari",)
_ENDLESS = (
    "--config.run.env_frames=100000000",
    "--config.run.metrics_seconds=2",
    "--config.run.evaluation_episodes=0",
)
_PATIENCE_SECONDS = 600.0  # for all actors to act: each loads TensorFlow first


def main(_: list[str]) -> None:
    """Measures, prints one line for each run, and writes the CSV file."""
    rows = []
    for row in _compare() if _OVERHEAD.value else _scale():
        print(row, flush=True)
        rows.append(row)
    if _OUTPUT.value:
        pd.DataFrame(rows).to_csv(_OUTPUT.value, index=False)


def _scale() -> Iterator[dict[str, float]]:
    base = None
    for actors in map(int, _ACTORS.value):
        environments = f"--config.cluster.envs_per_actor={_ENVS_PER_ACTOR.value}"
        frames, busy = _measure([*_WAITING, environments], actors)
        base = base or frames / actors
        yield {
            "actors": actors,
            "environments": actors * _ENVS_PER_ACTOR.value,
            "agent_steps_per_second": round(frames, 1),
            "of_linear": round(frames / (actors * base), 3),
            "learner_busy_fraction": round(busy, 3),
        }


def _compare() -> Iterator[dict[str, float]]:
    for repeat in range(_REPEATS.value):
        paces = {}
        ways = [("one_process", 0), ("one_remote_actor", 1)]
        for name, actors in ways if repeat % 2 == 0 else ways[::-1]:
            paces[name], _ = _measure(_PONG, actors)
        yield {
            "repeat": repeat,
            **{f"{name}_env_frames_per_second": round(paces[name], 1) for name, _ in ways},
            "ratio": round(paces["one_remote_actor"] / paces["one_process"], 3),
        }


def _measure(arguments: Sequence[str], actors: int) -> tuple[float, float]:
    """Measures a run with so many remote actors (0: one process) after its warm-up.

    Returns medians over time of the env frames per second, and of the learner's busy fraction.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        workdir = pathlib.Path(folder) / "run"
        actors_flag = f"--config.cluster.actors={actors}"
        with _running(workdir, [*arguments, actors_flag]) as process:
            _wait(process, _PATIENCE_SECONDS, lambda: _have_begun(workdir, actors))
            if not _have_begun(workdir, actors):
                raise SystemExit(
                    f"not all of {actors or 1} actors act after {_PATIENCE_SECONDS:g} s: use fewer"
                )
            _wait(process, _WARM_SECONDS.value)
            frames = max(_rows(workdir))
            _wait(process, _SECONDS.value)
            measured = [row for then, row in _rows(workdir).items() if then > frames]
    if not measured:
        raise SystemExit(f"nothing was learned in {_SECONDS.value:g} s: use a larger --seconds")
    return (
        statistics.median(row[_FRAMES] for row in measured),
        statistics.median(row[_BUSY] for row in measured),
    )


def _wait(
    process: subprocess.Popen, seconds: float, is_done: Callable[[], bool] = lambda: False
) -> None:
    start = time.monotonic()
    while time.monotonic() - start < seconds and not is_done():
        time.sleep(1.0)
        if process.poll() is not None:
            raise SystemExit(f"the run ended with {process.returncode}: see above")


def _rows(workdir: pathlib.Path) -> dict[int, dict[str, float]]:
    folder = workdir / "tensorboard"
    # TensorBoard regards an empty directory as removed.
    rows = tensorboard.read_rows(folder) if any(folder.glob("events*")) else {}
    return {frames: row for frames, row in rows.items() if _FRAMES in row}


def _have_begun(workdir: pathlib.Path, actors: int) -> bool:
    """Returns whether a run learns and all its remote actors act."""
    rows = _rows(workdir)
    if not rows:
        return False
    newest = rows[max(rows)]
    # An actor reports before it acts: loading TensorFlow in many processes takes a minute.
    names = [f"cluster/{run_state.ACTOR}{index:02d}/agent_steps" for index in range(actors)]
    return all(newest.get(name, 0) > 0 for name in names)


@contextlib.contextmanager
def _running(workdir: pathlib.Path, arguments: Sequence[str]) -> Iterator[subprocess.Popen]:
    command = [sys.executable, "-m", "launch.train", f"--workdir={workdir}", *arguments, *_ENDLESS]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=_PATIENCE_SECONDS)


if __name__ == "__main__":
    app.run(main)

"""Measures the throughput and memory of a sweep with one shared replay, or one for each member.

python -m tools.sweep_benchmark --members=9
python -m tools.sweep_benchmark --members=4 --noshared_replay --capacity=50000
"""

import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import psutil
from absl import app, flags

from laser_tf.plotting import sweep_tables
from laser_tf.workdir import run_directory

_MEMBERS = flags.DEFINE_integer("members", 9, "members with the same hyper-parameters")
_SHARED_REPLAY = flags.DEFINE_bool("shared_replay", True, "one replay for all members")
_CONFIG = flags.DEFINE_string("config", "configs/sweeps.py:minatar", "configuration of a sweep")
_CAPACITY = flags.DEFINE_integer("capacity", 100_000, "capacity of a replay, agent steps")
_WARM_UP_ENV_FRAMES = flags.DEFINE_integer(
    "warm_up_env_frames", 10_000, "env frames of each member before measuring"
)
_ENV_FRAMES = flags.DEFINE_integer("env_frames", 50_000, "env frames of each member")


def main(_: list[str]) -> None:
    """Trains and prints one JSON object."""
    with tempfile.TemporaryDirectory() as folder:
        workdir = pathlib.Path(folder) / "sweep"
        command = [
            sys.executable, "-m", "launch.sweep", f"--config={_CONFIG.value}",
            f"--workdir={workdir}", f"--shared_replay={_SHARED_REPLAY.value}",
            "--search_space=learner.learning_rate=grid(0.0006)",
            "--search_space=agent.entropy_cost=grid(0.01)",
            f"--config.sweep.samples={_MEMBERS.value}",
            f"--config.replay.capacity={_CAPACITY.value}",
            f"--config.run.env_frames={_ENV_FRAMES.value}",
            "--config.run.evaluation_episodes=0", "--config.run.metrics_seconds=1",
        ]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        result = _measure(process, workdir)
        process.wait()
    if process.returncode:
        raise SystemExit(f"the sweep ended with {process.returncode}: see above")
    print(json.dumps(result, indent=2))


def _measure(process: subprocess.Popen, workdir: pathlib.Path) -> dict[str, float]:
    """Measures memory until the sweep ends, and the pace while all members are past the warm-up."""
    first = last = None
    memory = 0
    while process.poll() is None:
        time.sleep(1.0)
        memory = max(memory, _memory_bytes(process.pid))
        frames = _env_frames(workdir)
        if min(frames, default=0) >= _WARM_UP_ENV_FRAMES.value and max(frames) < _ENV_FRAMES.value:
            last = (time.monotonic(), sum(frames))
            first = first or last
    if not first or first == last:
        raise SystemExit("too short to measure: give more --env_frames")
    return {
        "members": _MEMBERS.value,
        "shared_replay": _SHARED_REPLAY.value,
        "capacity": _CAPACITY.value,
        "env_frames_per_second": round((last[1] - first[1]) / (last[0] - first[0])),
        "memory_mib": round(memory / 2**20),
    }


def _memory_bytes(process_id: int) -> int:
    """Returns the memory of all processes, in which shared memory counts once (PSS)."""
    total = 0
    for process in psutil.Process(process_id).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # The process has ended.
            total += process.memory_full_info().pss
    return total


def _env_frames(workdir: pathlib.Path) -> list[int]:
    if not (workdir / run_directory.SWEEP_FILE).exists():
        return []
    (sweep,), _ = sweep_tables.find(workdir)
    return list(sweep.progress().values())


if __name__ == "__main__":
    app.run(main)

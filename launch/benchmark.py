"""Measures agent steps per second: of each part alone, and of all of them together.

python -m launch.benchmark
python -m launch.benchmark --config=configs/laser.py:atari --seconds=60
python -m launch.benchmark --config=configs/laser.py:atari_paper --hlo=update.hlo
"""

from laser_tf.host import interruption, private_network
from laser_tf.workdir import versions

if __name__ == "__main__":
    interruption.before_imports()
    versions.check()
    private_network.enter()

import json
import pathlib
import tempfile

from absl import flags

from laser_tf.training import run_config
from launch import command_line

_CONFIG = command_line.define_config("configs/impala.py:atari")
_SECONDS = flags.DEFINE_float("seconds", 30.0, "to measure end to end, after as long a warm-up")
_PART_SECONDS = flags.DEFINE_float("part_seconds", 5.0, "to measure each part alone")
_HLO = flags.DEFINE_string(
    "hlo", "", "new file; write the learner's update as an XLA program, and measure nothing else"
)

_MAX_SECONDS = 86_400.0  # a day


def main() -> None:
    """Measures and prints one JSON object."""
    for flag in (_SECONDS, _PART_SECONDS):
        if not 0 < flag.value <= _MAX_SECONDS:  # NaN, too
            raise command_line.UsageError(
                f"--{flag.name} must be above 0 and at most {_MAX_SECONDS:g}, got {flag.value}."
            )
    config = run_config.parse(_CONFIG.values())
    if _HLO.value:
        print(json.dumps(_write_hlo(config, pathlib.Path(_HLO.value)), indent=2))
        return
    if config.replay.uses_sequences and not config.replay.replay_table:
        raise command_line.UsageError(
            f"replay.scheme must store replay in Reverb, got {config.replay.scheme!r}. The parts "
            "that are measured sample from Reverb: use tools.sequence_store_benchmark"
        )
    if config.cluster.actors or config.replay.address:
        raise command_line.UsageError(
            "--config.cluster.actors and --config.replay.address must be left out, since one "
            "process with its own replay is measured. Use tools.cluster_benchmark for remote "
            "actors and tools.replay_benchmark for replay servers."
        )
    # TensorFlow takes seconds to load: only after the checks.
    from laser_tf.host import hardware

    dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
    jit, _ = hardware.choose_jit_compile(config.learner.jit_compile)
    setting = {
        "task": config.environment.task,
        "torso": config.agent.torso,
        "core": config.agent.core,
        "compute_dtype": dtype,
        "num_envs": config.environment.num_envs,
        "steps_per_entry": config.replay.steps_per_entry,
        "batch_size": config.replay.batch_size,
        "replay_scheme": config.replay.scheme,
        "replayed_entries": config.replay.replayed_entries,
    }
    print(json.dumps(setting | _measure(config, dtype, jit), indent=2))


def _write_hlo(config: run_config.RunConfig, path: pathlib.Path) -> dict[str, object]:
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
        reason = "the file exists" if path.exists() else ""
    except OSError as error:
        reason = error.strerror
    if reason:
        raise command_line.UsageError(
            f"--hlo must be a new file that can be written, got {path}: {reason}. Use another path."
        )
    from launch import benchmark_hlo  # After the checks, because TensorFlow takes seconds to load.

    return benchmark_hlo.write(config, path)


def _measure(config: run_config.RunConfig, dtype: str, jit: bool) -> dict[str, object]:
    from launch import benchmark_parts

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        together = benchmark_parts.end_to_end(config, folder / "run", _SECONDS.value)
        alone, batch_steps = benchmark_parts.parts_alone(
            config, dtype, jit, folder / "replay", _PART_SECONDS.value
        )
    return {
        "agent_steps_per_second_alone": {name: round(pace) for name, pace in alone.items()},
        "learner_updates_per_second_alone": round(alone["update"] / batch_steps, 3),
        "end_to_end": together,
    }


if __name__ == "__main__":
    command_line.run(main)

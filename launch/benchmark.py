"""Measures the cost model of a run: processor time per agent step of each part, and the bound.

python -m launch.benchmark
python -m launch.benchmark --config=laser:atari --seconds=60
python -m launch.benchmark --config=laser:atari_paper --hlo=update.hlo
python -m launch.benchmark --config=impala:atari --output=costs.csv --json
"""

from laser_tf.host import interruption, private_network
from laser_tf.workdir import versions

if __name__ == "__main__":
    interruption.before_imports()
    versions.check()
    private_network.enter()

import contextlib
import csv
import json
import os
import pathlib
import tempfile

from absl import flags

from laser_tf.training import run_config
from launch import command_line, cost_model

_CONFIG = command_line.define_config("configs/impala.py:atari")
_SECONDS = flags.DEFINE_float("seconds", 30.0, "seconds of the whole run, after an equal warm-up")
_PART_SECONDS = flags.DEFINE_float("part_seconds", 5.0, "seconds of each part alone")
_HLO = flags.DEFINE_string(
    "hlo", "", "new file; write the learner's update as an XLA program, and measure nothing else"
)
_JSON = flags.DEFINE_bool("json", False, "print one JSON object instead of tables")
_OUTPUT = flags.DEFINE_string("output", None, "CSV file to which rows of all parts are appended")

_MAX_SECONDS = 86_400.0  # a day


def main() -> None:
    """Measures a run and its parts and prints their costs."""
    for flag in (_SECONDS, _PART_SECONDS):
        if not 0 < flag.value <= _MAX_SECONDS:  # NaN, too
            raise command_line.UsageError(
                f"--{flag.name} must be above 0 and at most {_MAX_SECONDS:g}, got {flag.value}."
            )
    config = run_config.parse(_CONFIG.values())
    if _HLO.value:
        print(json.dumps(_write_hlo(config, pathlib.Path(_HLO.value)), indent=2))
        return
    _check(config)
    _append([])  # Fails before the measurement.
    # TensorFlow takes seconds to load: only after the checks.
    from laser_tf.host import hardware

    hardware.spare_cores(config.learner.spare_cores)
    dtype, _ = hardware.choose_compute_dtype(config.learner.compute_dtype)
    jit, _ = hardware.choose_jit_compile(config.learner.jit_compile)
    model = _measure(config, dtype, jit)
    _append(model.rows())
    if not _JSON.value:
        print(f"{model.configuration}\n\n{model.table()}")
        return
    setting = {
        "configuration": model.configuration,
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
    print(json.dumps(setting | model.to_json(), indent=2))


def _check(config: run_config.RunConfig) -> None:
    """Raises UsageError for a configuration whose parts cannot be measured."""
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


def _append(rows: list[dict[str, object]]) -> None:
    """Appends rows to `--output`, if any; raises UsageError if it cannot be written."""
    if _OUTPUT.value is None:
        return
    try:
        with pathlib.Path(_OUTPUT.value).open("a", newline="") as file:
            writer = csv.DictWriter(file, cost_model.COLUMNS, lineterminator="\n")
            if rows and not file.tell():
                writer.writeheader()
            writer.writerows(rows)
    except OSError as error:
        raise command_line.UsageError(
            f"--output must be a file that can be written, got {_OUTPUT.value!r}: "
            f"{error.strerror}. Use another path."
        ) from None


def _measure(config: run_config.RunConfig, dtype: str, jit: bool) -> cost_model.CostModel:
    from launch import benchmark_parts

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        together = benchmark_parts.end_to_end(config, folder / "run", _SECONDS.value)
        alone = benchmark_parts.Parts(config, dtype, jit, folder / "replay", _PART_SECONDS.value)
        with contextlib.closing(alone):
            parts, calls = alone.measure()
    overrides = (f"{key}={text}" for key, text in _CONFIG.overrides.items())
    configuration = " ".join([_CONFIG.file, *overrides])
    cores = len(os.sched_getaffinity(0))
    return cost_model.CostModel(configuration, cores, parts, calls, together)


if __name__ == "__main__":
    command_line.run(main)

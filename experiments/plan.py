"""Runs of an experiment: their directories, validated configurations and commands."""

import dataclasses
import itertools
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments import base
from laser_tf import errors
from laser_tf.plotting import tables
from laser_tf.sweeps import sweep_config
from laser_tf.training import run_config
from launch import found_config, subcommand


@dataclasses.dataclass(frozen=True)
class PlannedRun:
    """One run, or one sweep."""

    task: str
    label: str  # of its condition
    seed: int
    workdir: pathlib.Path
    config: str  # value of --config
    overrides: Mapping[str, Any]  # "section.key" -> value
    parsed: run_config.RunConfig | sweep_config.SweepConfig

    @property
    def title(self) -> str:
        """Returns a description for the log."""
        return f"{self.label}, {self.task}, seed {self.seed}"

    @property
    def first(self) -> run_config.RunConfig:
        """Returns the configuration of the run, or of a sweep's first member."""
        parsed = self.parsed
        return parsed.first if isinstance(parsed, sweep_config.SweepConfig) else parsed

    def command(self, module: str, extend: bool, has_log: bool) -> subcommand.Command:
        """Returns the command that trains or continues it.

        Args:
          module: Command of `launch`.
          extend: Whether a higher `run.env_frames` is accepted.
          has_log: Whether its output goes to `<workdir>.log`.
        """
        arguments = (
            f"--config={self.config}",
            f"--workdir={self.workdir}",
            *["--extend"] * extend,
            *(f"--config.{key}={value}" for key, value in self.overrides.items()),
        )
        log = self.workdir.with_name(f"{self.workdir.name}.log") if has_log else None
        return subcommand.Command(module, arguments, f"{self.title}: {self.workdir}", log)


def make(
    name: str,
    experiment: base.Experiment,
    *,
    workdir: pathlib.Path,
    tasks: Sequence[str] = (),
    seeds: int = 3,
    overrides: base.Overrides | None = None,
    config: str = "",
) -> list[PlannedRun]:
    """Plans all runs of an experiment; nothing is written.

    Args:
      name: Name of the experiment.
      experiment: The experiment.
      workdir: Directory of all its runs.
      tasks: Tasks; (): those of the experiment.
      seeds: Number of repetitions.
      overrides: Overrides of all runs, "section.key" -> value.
      config: Configuration instead of the experiment's.

    Raises:
      UserError: If a run's configuration is invalid, or an override would make conditions equal.
    """
    given = dict(overrides or {})
    if "environment.task" in given:
        raise errors.UserError(
            "--override=environment.task must not be given. Use "
            f"--tasks={given['environment.task']}."
        )
    runs = {}  # A task may have several names: each run once.
    for seed, task, condition in itertools.product(
        range(1, seeds + 1), tasks or experiment.tasks or ("",), experiment.conditions
    ):
        if fixed := sorted(given.keys() & condition.overrides.keys()):
            raise errors.UserError(
                f"--override={fixed[0]} must not be given, since {name} compares runs by it. Leave "
                "it out."
            )
        path = condition.config or config or experiment.config
        values = found_config.load(path).to_dict()
        changes = {
            **experiment.overrides,
            **given,
            "environment.task": task or values["environment"]["task"],
            "run.seed": values["run"]["seed"] + 1_000 * (seed - 1),
            **({} if experiment.history_lengths else {"run.evaluation_episodes": 0}),
            **condition.overrides,
        }
        if experiment.command == "sweep":
            changes |= {"sweep.label": condition.label, "sweep.seed_index": seed}
        parsed = _parse(name, experiment, path, values, changes)
        run = PlannedRun(task, condition.label, seed, workdir, path, changes, parsed)
        own_task = run.first.environment.task
        folder = condition.workdir(workdir, own_task, seed)
        runs[folder] = dataclasses.replace(run, task=own_task, workdir=folder)
    return list(runs.values())


def directories(runs: Iterable[PlannedRun]) -> tables.Runs:
    """Returns task -> label -> directories of the seeds."""
    found: dict[str, dict[str, list[pathlib.Path]]] = {}
    for run in runs:
        found.setdefault(run.task, {}).setdefault(run.label, []).append(run.workdir)
    return found


def _parse(
    name: str,
    experiment: base.Experiment,
    config: str,
    values: dict[str, Any],
    changes: Mapping[str, Any],
) -> run_config.RunConfig | sweep_config.SweepConfig:
    """Validates the configuration of a run before anything is trained."""
    unknown = [key for key in changes if key.partition(".")[0] not in values]
    if unknown or ("sweep" in values) != (experiment.command == "sweep"):
        reason = f"no section of {unknown[0]}" if unknown else "another kind of configuration"
        raise errors.UserError(
            f"--config={config} has {reason} than {name} needs. Use --config={experiment.config}."
        )
    parser = sweep_config if experiment.command == "sweep" else run_config
    return parser.parse(run_config.override(values, changes))

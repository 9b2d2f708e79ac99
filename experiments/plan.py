"""Runs of an experiment: their directories, validated configurations and commands."""

import dataclasses
import itertools
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments import base
from laser_tf import errors
from laser_tf.api import config_files
from laser_tf.plotting import tables
from laser_tf.sweeps import sweep_config
from laser_tf.training import config_choices, run_config
from launch import subcommand


@dataclasses.dataclass(frozen=True)
class PlannedRun:
    """A run or a sweep."""

    task: str
    label: str  # of its condition
    seed: int
    workdir: pathlib.Path
    config: str  # value of --config
    overrides: Mapping[str, Any]  # "section.key" -> value
    parsed: run_config.RunConfig | sweep_config.SweepConfig
    ray_address: str = ""  # Ray cluster for runs of one process; "" for this machine

    @property
    def title(self) -> str:
        """Returns a description for the log."""
        return f"{self.label}, {self.task}, seed {self.seed}"

    @property
    def first(self) -> run_config.RunConfig:
        """Returns the configuration of the run, or of a sweep's first member."""
        parsed = self.parsed
        return parsed.first if isinstance(parsed, sweep_config.SweepConfig) else parsed

    def command(self, extend: bool, has_log: bool) -> subcommand.Command:
        """Returns the command that trains or continues it.

        `extend` accepts a higher `run.env_frames`; `has_log` sends the output to `<workdir>.log`.
        """
        arguments = (
            f"--config={self.config}",
            f"--workdir={self.workdir}",
            *["--extend"] * extend,
            *(f"--config.{key}={value}" for key, value in self.overrides.items()),
        )
        log = self.workdir.with_name(f"{self.workdir.name}.log") if has_log else None
        module = "sweep" if isinstance(self.parsed, sweep_config.SweepConfig) else "train"
        return subcommand.Command(module, arguments, f"{self.title}: {self.workdir}", log)


def make(
    name: str,
    experiment: base.Experiment,
    *,
    workdir: pathlib.Path,
    tasks: Sequence[str] = (),
    labels: Sequence[str] = (),
    seeds: int = 3,
    overrides: base.Overrides | None = None,
    config: str = "",
) -> list[PlannedRun]:
    """Plans all runs of an experiment below `workdir`; nothing is written.

    `tasks` and `config` replace those of the experiment if they are not empty; `labels` selects
    conditions; `overrides` are for all runs.

    Raises:
      UserError: If a run's configuration is invalid, or an override would make conditions equal.
    """
    given = overrides or {}
    _check_overrides(given)
    known = [condition.label for condition in experiment.conditions]
    if unknown := set(labels) - set(known):
        raise errors.UserError(
            f"--label must be one of {', '.join(map(repr, known))}, got {min(unknown)!r}. Use e.g. "
            f"--label={known[0]!r}."
        )
    conditions = [c for c in experiment.conditions if not labels or c.label in labels]
    is_sweep = "sweep" in config_files.load(experiment.config)
    runs = {}  # A task may have several names: each run once.
    for seed, task, condition in itertools.product(
        range(1, seeds + 1), tasks or experiment.tasks or ("",), conditions
    ):
        if fixed := sorted(given.keys() & condition.overrides.keys()):
            raise errors.UserError(
                f"--override={fixed[0]} must not be given, since {name} compares runs by it. Leave "
                "it out."
            )
        path = condition.config or config or experiment.config
        values = config_files.load(path, "--config").to_dict()
        run_config.check_nesting(values)
        if ("sweep" in values) != is_sweep:
            raise errors.UserError(
                f"--config={path} must{'' if is_sweep else ' not'} be a sweep for {name}. Use e.g. "
                f"--config={experiment.config}."
            )
        changes = _changes(experiment, condition, given, values, task, seed)
        address = ""
        if is_sweep:
            changes |= {"sweep.label": condition.label, "sweep.seed_index": seed}
        elif not changes.get("cluster.actors"):
            address = changes.pop("cluster.address", "")
        parser = sweep_config if is_sweep else run_config
        parsed = parser.parse(config_choices.override(values, changes))
        first = parsed.first if is_sweep else parsed
        if experiment.history_lengths and not first.run.evaluation_episodes:
            raise errors.UserError(
                f"run.evaluation_episodes must be above 0 for {name}, which compares evaluations, "
                "got 0. Use e.g. --override=run.evaluation_episodes=20."
            )
        folder = condition.workdir(workdir, first.environment.task, seed)
        runs[folder] = PlannedRun(
            first.environment.task, condition.label, seed, folder, path, changes, parsed, address
        )
    return list(runs.values())


def _changes(
    experiment: base.Experiment,
    condition: base.Condition,
    given: base.Overrides,
    values: Mapping[str, Mapping[str, Any]],
    task: str,
    repetition: int,
) -> base.Overrides:
    """Returns the overrides of a run; `values` are those of its configuration file."""
    seed = given.get("run.seed", values.get("run", {}).get("seed", run_config.Config.seed))
    if type(seed) is int:  # The parser reports any other seed.
        seed += 1_000 * (repetition - 1)
    own_task = task or values.get("environment", {}).get("task")
    return {
        **experiment.overrides,
        **({} if experiment.history_lengths else {"run.evaluation_episodes": 0}),
        **given,
        **({"environment.task": own_task} if own_task else {}),
        "run.seed": seed,
        **condition.overrides,
    }


def _check_overrides(given: base.Overrides) -> None:
    """Raises UserError for keys whose values come from the experiment or another flag."""
    if "environment.task" in given:
        raise errors.UserError(
            "--override=environment.task must not be given. Use "
            f"--tasks={given['environment.task']}."
        )
    for key in ("sweep.label", "sweep.seed_index"):
        if key in given:
            raise errors.UserError(
                f"--override={key} must not be given, got {given[key]}, since each run has its "
                "own. Leave it out."
            )


def directories(runs: Iterable[PlannedRun]) -> tables.Runs:
    """Returns task -> label -> directories of the seeds."""
    found: dict[str, dict[str, list[pathlib.Path]]] = {}
    for run in runs:
        found.setdefault(run.task, {}).setdefault(run.label, []).append(run.workdir)
    return found

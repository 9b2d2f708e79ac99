"""Configuration of a sweep: a run's configuration, and the differences between members."""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from laser_tf import config_checks, config_values, errors
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.sweeps import member_compatibility, population
from laser_tf.training import cluster_config, config_choices, run_config

# Keys of the section that vary other keys.
PARTS = ("grid", "zipped", "uniform", "log_uniform", "choices")
_MAX_MEMBERS = 1_000
_OWN_SECTIONS = ("sweep", "population", "cluster")
_Part = Mapping[str, Mapping[str, Sequence]]  # section -> key -> values


def _empty() -> Any:
    return dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Config:
    """Differences between the members of a sweep.

    Raises:
      ConfigError: If a value is out of range.
    """

    grid: _Part = _empty()  # values of which each combination is a member, (a, b, ...)
    zipped: _Part = _empty()  # values of which the i-th of all keys are a member, (a, b, ...)
    uniform: _Part = _empty()  # (lowest, highest) between which values are sampled
    log_uniform: _Part = _empty()  # (lowest, highest) of values with a uniform logarithm
    choices: _Part = _empty()  # values of which each member samples one, (a, b, ...)
    samples: int = 1  # members; for each point of grid and zipped, each sampled separately
    seed: int = 1  # seed; of the sampled values; members' own seeds count up from run.seed
    shared_replay: bool = True  # one replay for all members, or one for each
    equal_speed: bool = True  # whether members wait for each other
    max_lead_env_frames: int = 20_000  # env frames; that a member may be ahead of the slowest
    label: str = ""  # of the condition that a report compares
    seed_index: int = 1  # number; which repetition of the condition it is

    def __post_init__(self):
        config_checks.check_types(self)
        for name in ("samples", "max_lead_env_frames", "seed_index"):
            config_checks.check_range(self, name, 1)
        config_checks.check_range(self, "seed", 0)
        self._check_values()
        grid, zipped = (config_values.flatten(part) for part in (self.grid, self.zipped))
        rows = len(next(iter(zipped.values()), (None,)))
        if (members := math.prod(map(len, grid.values())) * rows * self.samples) > _MAX_MEMBERS:
            raise errors.ConfigError(
                f"samples, grid and zipped must make at most {_MAX_MEMBERS} members, got {members}."
            )

    def _check_values(self) -> None:
        parts = {name: config_values.flatten(getattr(self, name)) for name in PARTS}
        for name, part in parts.items():
            for key, values in part.items():
                if not isinstance(values, tuple | list) or not values:
                    raise errors.ConfigError(
                        f"{name}.{key} must be a tuple of values, got {values!r}."
                    )
        for (one, flat), (other, others) in itertools.combinations(parts.items(), 2):
            for key in flat.keys() & others.keys():
                raise errors.ConfigError(
                    f"{one}.{key} is {flat[key]!r} and {other}.{key} is {others[key]!r}. Use one "
                    "of them."
                )
        lengths = {key: len(values) for key, values in parts["zipped"].items()}
        if len(set(lengths.values())) > 1:
            raise errors.ConfigError(
                f"zipped must have equally many values for each key, got {lengths}."
            )
        for name in ("uniform", "log_uniform"):
            for key, values in parts[name].items():
                _check_bounds(f"{name}.{key}", values, is_log=name == "log_uniform")

    def points(self) -> Iterator[dict[str, Any]]:
        """Yields the points of grid and zipped, `section.key` -> value; {} without both."""
        grid, zipped = config_values.flatten(self.grid), config_values.flatten(self.zipped)
        rows = list(zip(*zipped.values(), strict=True)) if zipped else [()]
        for *point, row in itertools.product(*grid.values(), rows):
            yield dict(zip((*grid, *zipped), (*point, *row), strict=True))

    def members(self) -> Iterator[dict[str, Any]]:
        """Yields the values of each member, `section.key` -> value."""
        random = np.random.default_rng(self.seed)
        for point in self.points():
            for _ in range(self.samples):
                values = dict(point)
                for key, (lowest, highest) in config_values.flatten(self.log_uniform).items():
                    values[key] = float(np.exp(random.uniform(np.log(lowest), np.log(highest))))
                for key, choices in config_values.flatten(self.choices).items():
                    values[key] = choices[random.integers(len(choices))]
                for key, (lowest, highest) in config_values.flatten(self.uniform).items():
                    values[key] = float(random.uniform(lowest, highest))
                yield values


def _check_bounds(key: str, values: Sequence[Any], *, is_log: bool) -> None:
    for value in values:
        config_checks.check_number(key, value)
    if len(values) != 2 or values[0] > values[1] or is_log and values[0] <= 0:
        raise errors.ConfigError(
            f"{key} must be (lowest, highest){', both above 0' if is_log else ''}, got {values!r}."
        )


@dataclasses.dataclass(frozen=True)
class SweepConfig:
    """Configuration of a sweep and of its members."""

    sweep: Config
    population: population.Config
    cluster: cluster_config.ClusterConfig
    members: Mapping[str, run_config.RunConfig]  # Name -> configuration.
    hyperparameters: Mapping[str, Mapping[str, Any]]  # Name -> `section.key` -> own value.

    @property
    def first(self) -> run_config.RunConfig:
        """The configuration of the first member."""
        return next(iter(self.members.values()))

    @property
    def queues(self) -> list[str]:
        """The queues of the members' learners, in the order of the members."""
        return [schemes_base.queue_name(name) for name in self.members]


def parse(values: Mapping[str, Mapping[str, Any]]) -> SweepConfig:
    """Builds the configuration of a sweep from nested mappings, one for each section.

    The sections are those of a run, `sweep` and `population`; `cluster` belongs to the sweep.

    Raises:
      ConfigError: For an unknown, a missing or an invalid key, or members that cannot share replay.
    """
    run_config.check_nesting(values)
    base = {name: section for name, section in values.items() if name not in _OWN_SECTIONS}
    sweep = run_config.parse_section("sweep", Config, values)
    hyperparameters = {f"member_{i:02d}": member for i, member in enumerate(sweep.members())}
    check_swept(hyperparameters["member_00"])
    first_seed = run_config.parse_section("run", run_config.Config, values).seed
    members = {
        name: parse_member(
            f"{name} of the sweep", base, {"run.seed": first_seed + index} | overrides
        )
        for index, (name, overrides) in enumerate(hyperparameters.items())
    }
    cluster = run_config.parse_section("cluster", cluster_config.ClusterConfig, values)
    with config_choices.in_section("cluster"):
        cluster.check_defaults(
            ("actors", "envs_per_actor", "learners"),
            "in a sweep, whose members are one process each",
        )
    if address := base.get("replay", {}).get("address"):
        raise errors.ConfigError(
            f"config.replay: address must be empty, because a sweep has its own replay, got "
            f"{address!r}."
        )
    if sweep.shared_replay:
        member_compatibility.check_shareable(members)
    elif port := base.get("run", {}).get("replay_port"):
        raise errors.ConfigError(
            "config.run: replay_port must be 0, because each member has its own replay, got "
            f"{port}."
        )
    return SweepConfig(sweep, _parse_population(values, members), cluster, members, hyperparameters)


def check_swept(keys: Iterable[str]) -> None:
    """Raises ConfigError for a key that a sweep must not vary."""
    for key in keys:
        if key == "run.env_frames" or key.startswith("cluster."):
            raise errors.ConfigError(
                f"config.sweep: {key} must be the same for all members. Sweep other keys."
            )


def parse_member(
    name: str, base: Mapping[str, Mapping[str, Any]], overrides: Mapping[str, Any]
) -> run_config.RunConfig:
    """Returns the configuration of a member with other values, `section.key` -> value.

    Raises:
      ConfigError: For an unknown key or an invalid value; the message has the name.
    """
    if unknown := [key for key in overrides if "." not in key]:
        raise errors.ConfigError(
            f"config.sweep: keys of {', '.join(PARTS)} must be section.key, got {unknown[0]!r}. "
            "Add the section."
        )
    try:
        return run_config.parse(config_choices.override(base, overrides))
    except errors.ConfigError as error:
        raise errors.ConfigError(f"{name}: {error}") from None


def check_flags_have_effect(
    values: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]
) -> None:
    """Raises ConfigError for a `given` key that has no effect, because the sweep varies it."""
    for part in PARTS:
        swept = config_values.flatten(values["sweep"].get(part, {}))
        for key in swept.keys() & given.keys():
            raise errors.ConfigError(
                f"--config.{key}={given[key]} has no effect, because the sweep's {part} varies the "
                f"key. Use --config.sweep.{part}.{key}, which is {swept[key]}."
            )


def defaults(values: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Returns the default values of all keys of a sweep's configuration, nested."""
    return run_config.defaults(values, sweep=Config, population=population.Config)


def _parse_population(
    values: Mapping[str, Mapping[str, Any]], members: Mapping[str, run_config.RunConfig]
) -> population.Config:
    settings = run_config.parse_section("population", population.Config, values)
    if settings.method == "none":
        return settings
    member_compatibility.check_copyable(members)  # All have the same agent and optimiser.
    flat = {name: config_values.flatten(dataclasses.asdict(own)) for name, own in members.items()}
    first, config = next(iter(members.items()))
    tunable = [key for key in config.learner.tunable if key in flat[first]]
    if "tuned" not in values["population"]:
        tuned = tuple(key for key in settings.tuned if key in tunable)
        settings = dataclasses.replace(settings, tuned=tuned)
    for key, (name, own) in itertools.product(settings.tuned, flat.items()):
        if key not in tunable or not own[key] > 0:
            raise errors.ConfigError(
                f"config.population: tuned must name keys with values above 0, of "
                f"{', '.join(tunable)}, got {key}, which is {own.get(key)} for {name}."
            )
    return settings

"""A sweep: one configuration, what differs between its members, and how they live together."""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from laser_tf import config_checks, config_values, errors
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.sweeps import population
from laser_tf.training import cluster_config, run_config

MAX_MEMBERS = 1_000  # more need another engine
PARTS = ("grid", "zipped", "log_uniform", "choices")  # of the section that vary keys
_OWN_SECTIONS = ("sweep", "population", "cluster")
# Of one replay's members; whatever else the environment and replay sections say must be the same.
_MAY_DIFFER = (
    "environment.num_envs",
    "environment.num_threads",
    "replay.batch_size",
    "replay.replay_fraction",
    "replay.replay_ratio",
)
# Beside the environment, what weights fit and mean the same to, of members that take over each
# other's. Where a member has no such key, it is None.
OF_WEIGHTS = (
    "learner.optimizer", "replay.frame_stack",
    *(
        f"agent.{key}"
        for key in (
            "kind", "torso", "channel_multiplier", "center_observation", "normalise_images",
            "mlp_units", "mlp_activation", "normalise_vectors", "fusion_units", "core", "core_size",
            "hidden_units", "advantage_units", "bins", "v_min", "v_max", "distributional",
            "continuous_policy", "popart", "pixel_control_cell",
        )
    ),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Config:
    """What a sweep's members differ in.

    `grid`, `zipped`, `log_uniform` and `choices` are nested like a run's configuration: section ->
    key.

    Raises:
      ValueError: for a value out of range; the message names it and the remedy.
    """

    grid: Mapping[str, Mapping[str, Sequence]] = dataclasses.field(
        default_factory=dict
    )  # values of which each combination is a member, (a, b, ...)
    zipped: Mapping[str, Mapping[str, Sequence]] = dataclasses.field(
        default_factory=dict
    )  # values of which the i-th of all keys together are a member, (a, b, ...)
    log_uniform: Mapping[str, Mapping[str, Sequence[float]]] = dataclasses.field(
        default_factory=dict
    )  # (lowest, highest) of values drawn between them
    choices: Mapping[str, Mapping[str, Sequence]] = dataclasses.field(
        default_factory=dict
    )  # values of which each member draws one, (a, b, ...)
    samples: int = 1  # members; for each point of grid and zipped, each with draws of its own
    seed: int = 1  # seed; of the draws; members' own seeds count up from run.seed
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
        self._check_keys()
        sizes = [len(values) for values in config_values.flatten(self.grid).values()]
        if (members := self.samples * math.prod(sizes) * len(self.zipped_points)) > MAX_MEMBERS:
            raise errors.ConfigError(
                f"samples is {self.samples}: with grid and zipped that makes {members} members; "
                f"use values that make {MAX_MEMBERS} or fewer"
            )

    @property
    def zipped_points(self) -> list[dict[str, Any]]:
        """What `zipped` gives one member after the other, "section.key" -> value; {} without it."""
        zipped = config_values.flatten(self.zipped)
        rows = zip(*zipped.values(), strict=True) if zipped else [()]
        return [dict(zip(zipped, row, strict=True)) for row in rows]

    def _check_keys(self) -> None:
        for one, other in itertools.combinations(PARTS, 2):
            flat, others = (config_values.flatten(getattr(self, name)) for name in (one, other))
            for key in flat.keys() & others.keys():
                raise errors.ConfigError(
                    f"{one}.{key} is {flat[key]!r} and {other}.{key} is {others[key]!r}: use one "
                    "of them"
                )

    def _check_values(self) -> None:
        for name in PARTS:
            for key, values in config_values.flatten(getattr(self, name)).items():
                if not isinstance(values, tuple | list) or not values:
                    raise errors.ConfigError(f"{name}.{key} is {values!r}: use a tuple of values")
        lengths = {key: len(row) for key, row in config_values.flatten(self.zipped).items()}
        if len(set(lengths.values())) > 1:
            raise errors.ConfigError(f"zipped has {lengths} values: give each key equally many")
        for key, values in config_values.flatten(self.log_uniform).items():
            for value in values:
                config_checks.check_number(f"log_uniform.{key}", value)
            if len(values) != 2 or not 0 < values[0] <= values[1]:
                raise errors.ConfigError(
                    f"log_uniform.{key} is {values!r}: use (lowest, highest), both above 0"
                )


@dataclasses.dataclass(frozen=True)
class SweepConfig:
    """Everything that defines a sweep."""

    sweep: Config
    population: population.Config
    cluster: cluster_config.ClusterConfig  # where its processes are
    members: Mapping[str, run_config.RunConfig]  # name -> its whole configuration
    hyperparameters: Mapping[str, Mapping[str, Any]]  # name -> "section.key" -> what it was given

    @property
    def first(self) -> run_config.RunConfig:
        """The first member's configuration."""
        return next(iter(self.members.values()))


def parse(values: Mapping[str, Mapping[str, Any]]) -> SweepConfig:
    """Builds a sweep's configuration from nested mappings, one for each section.

    Sections are those of a run, `sweep` and `population`; `cluster` is the sweep's own.

    Raises:
      ValueError: for an unknown, a missing or an invalid key, or members that cannot share
        replay; the message names `section.key`.
    """
    run_config.check_nesting(values)
    base = {name: section for name, section in values.items() if name not in _OWN_SECTIONS}
    sweep = run_config.parse_section("sweep", Config, values)
    hyperparameters = {
        f"member_{index:02d}": overrides for index, overrides in enumerate(_overrides(sweep))
    }
    if any("run.env_frames" in overrides for overrides in hyperparameters.values()):
        raise errors.ConfigError(
            "config.sweep: run.env_frames is the same for all members: sweep other keys"
        )
    first_seed = run_config.parse_section("run", run_config.Config, values).seed
    members = {
        name: _parse_member(name, base, {"run.seed": first_seed + index} | overrides)
        for index, (name, overrides) in enumerate(hyperparameters.items())
    }
    cluster = _parse_cluster(values, members)
    if address := base.get("replay", {}).get("address"):
        raise errors.ConfigError(
            f"config.replay: address is {address!r}, but a sweep's processes have a replay of "
            "their own: leave it out"
        )
    if sweep.shared_replay:
        _check_shareable(members)
    elif port := base.get("run", {}).get("replay_port"):
        raise errors.ConfigError(
            f"config.run: replay_port is {port}, but each member has a replay of its own: use 0"
        )
    return SweepConfig(sweep, _parse_population(values, members), cluster, members, hyperparameters)


def check_given(values: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]) -> None:
    """Checks that what a user sets for all members is not what each of them has of its own.

    Args:
      values: nested, of the sweep.
      given: "section.key" -> value.

    Raises:
      ValueError: for a key that would have no effect; the message names it and the remedy.
    """
    for part in PARTS:
        swept = config_values.flatten(values["sweep"].get(part, {}))
        for key in swept.keys() & given.keys():
            raise errors.ConfigError(
                f"--config.{key}={given[key]} has no effect: the sweep's {part} gives each member "
                f"its own; use --config.sweep.{part}.{key}, which is {swept[key]}"
            )


def defaults(values: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """What each key is taken as that a sweep's configuration does not name, nested."""
    return run_config.defaults(values, sweep=Config, population=population.Config)


def _parse_cluster(
    values: Mapping[str, Mapping[str, Any]], members: Mapping[str, run_config.RunConfig]
) -> cluster_config.ClusterConfig:
    for config in members.values():
        if config.cluster != cluster_config.ClusterConfig():
            raise errors.ConfigError(
                "config.sweep: cluster is the same for all members: sweep other keys"
            )
    cluster = run_config.parse_section("cluster", cluster_config.ClusterConfig, values)
    try:
        cluster.check_sweep()
    except ValueError as error:
        raise errors.ConfigError(f"config.cluster: {error}") from None
    return cluster


def _overrides(sweep: Config) -> Iterator[dict[str, Any]]:
    """What each member is given, "section.key" -> value."""
    random = np.random.default_rng(sweep.seed)
    grid = config_values.flatten(sweep.grid)
    for *point, together in itertools.product(*grid.values(), sweep.zipped_points):
        for _ in range(sweep.samples):
            overrides = dict(zip(grid, point, strict=True)) | together
            for key, (lowest, highest) in config_values.flatten(sweep.log_uniform).items():
                overrides[key] = float(np.exp(random.uniform(np.log(lowest), np.log(highest))))
            for key, values in config_values.flatten(sweep.choices).items():
                overrides[key] = values[random.integers(len(values))]
            yield overrides


def _parse_member(
    name: str, base: Mapping[str, Mapping[str, Any]], overrides: Mapping[str, Any]
) -> run_config.RunConfig:
    values = {section: dict(keys) for section, keys in base.items()}
    try:
        if scheme := overrides.get("replay.scheme"):
            values = run_config.override(values, {"replay.scheme": scheme})
        for key, value in overrides.items():
            section, _, rest = key.partition(".")
            values.setdefault(section, {})[rest] = value
        return run_config.parse(values)
    except ValueError as error:
        raise errors.ConfigError(f"{name} of the sweep: {error}") from None


def _check_shareable(members: Mapping[str, run_config.RunConfig]) -> None:
    """Raises ValueError, naming what differs, unless members can live on one replay."""
    _check_same(
        {name: _shared_values(member) for name, member in members.items()},
        "members on one replay need the same; sweep something else, or use shared_replay=false",
    )
    first = next(iter(members))
    replay = members[first].replay
    if replay.uses_priorities:
        raise errors.ConfigError(
            f"config.replay: priority_exponent is {replay.sampler_exponent}, but one member's "
            "priorities mean nothing to another (LASER, section 5.2): use 0, or shared_replay=false"
        )
    if members[first].agent.core != "none" and replay.replays_stored_states:
        raise errors.ConfigError(
            "config.replay: core_state is 'stored', but a member's states mean nothing to others "
            "(LASER, section A.2): use core_state=zero, shared_replay=false, or a replay.scheme "
            "that recomputes them"
        )


def _parse_population(
    values: Mapping[str, Mapping[str, Any]], members: Mapping[str, run_config.RunConfig]
) -> population.Config:
    settings = run_config.parse_section("population", population.Config, values)
    if settings.method == "none":
        return settings
    _check_same(
        {name: _of_weights(member) for name, member in members.items()},
        "members of a population are ranked by their returns and take over each other's state; "
        "sweep something else, or use population.method='none'",
    )
    if "tuned" not in values["population"]:
        tunable = _tunable(next(iter(members.values())))
        tuned = tuple(key for key in settings.tuned if key in tunable)
        settings = dataclasses.replace(settings, tuned=tuned)
    _check_tuned(settings.tuned, members)
    return settings


def _check_same(values_of: Mapping[str, Mapping[str, Any]], reason: str) -> None:
    """Raises ValueError, naming the first difference, unless all members have the same values."""
    (first, reference), *others = values_of.items()
    for name, values in others:
        for key, value in values.items():
            if value != reference[key]:
                raise errors.ConfigError(
                    f"{key} is {reference[key]!r} for {first}, but {value!r} for {name}: {reason}"
                )


def _of_weights(config: run_config.RunConfig) -> dict[str, Any]:
    flat = config_values.flatten(dataclasses.asdict(config))
    found = _of_sections(flat, "environment.") | {key: flat.get(key) for key in OF_WEIGHTS}
    found["agent.pixel_control_cost above 0"] = flat.get("agent.pixel_control_cost", 0.0) > 0
    return found


def _tunable(config: run_config.RunConfig) -> dict[str, float]:
    """What a population can change of a member, as it is configured."""
    flat = config_values.flatten(dataclasses.asdict(config))
    return {key: flat[key] for key in config.learner.tunable if key in flat}


def _check_tuned(tuned: Sequence[str], members: Mapping[str, run_config.RunConfig]) -> None:
    for name, config in members.items():
        tunable = _tunable(config)
        for key in tuned:
            if not tunable.get(key, 0.0) > 0:
                value = config_values.flatten(dataclasses.asdict(config)).get(key)
                raise errors.ConfigError(
                    f"config.population: {key}, {value} for {name}, cannot be tuned: use values "
                    f"above 0 of {', '.join(tunable)}"
                )


def _of_sections(flat: Mapping[str, Any], *sections: str) -> dict[str, Any]:
    return {
        key: value
        for key, value in flat.items()
        if key.startswith(sections) and key not in _MAY_DIFFER
    }


def _shared_values(config: run_config.RunConfig) -> dict[str, Any]:
    flat = config_values.flatten(dataclasses.asdict(config))
    shared = _of_sections(flat, "environment.", "replay.")
    # Stored are a Gaussian's parameters and what was drawn before its squashing or clipping.
    for key in ("agent.core", "agent.core_size", "agent.continuous_policy"):
        shared[key] = flat.get(key)
    shared["replay's table"] = config.replay.replay_table or "none"
    return shared


def queues(config: SweepConfig) -> list[str]:
    """The queues of the members' learners, in the members' order."""
    return [schemes_base.queue_of(name) for name in config.members]

"""Configuration of a run: a validated dataclass for each section of a file in `configs/`."""

import dataclasses
import pathlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar, cast

from laser_tf import config_checks, config_values, errors, user_code
from laser_tf.agents import agent_config
from laser_tf.environments import environment_config
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.replay.schemes import registry as schemes
from laser_tf.training import cluster_config, config_choices, learner_config
from laser_tf.workdir import run_directory

Section = TypeVar("Section")


@dataclasses.dataclass(frozen=True)
class Config:
    """Length, seed, checkpoints, metrics and evaluations of a run."""

    env_frames: int = 3_000_000  # env frames; budget of the run
    seed: int = 1  # seed; of weights, actions and environments
    serial: bool = False  # actor and learner take turns, so that equal seeds give equal runs
    checkpoint_minutes: float = 5.0  # minutes; period of checkpoints without replay
    replay_checkpoint_minutes: float = 30.0  # minutes; period of checkpoints of replay
    metrics_seconds: float = 10.0  # seconds; between rows in TensorBoard, 200 in all at least
    replay_port: int = 0  # port; of the run's Reverb server; 0: any free port
    evaluation_episodes: int = 30  # episodes; per task, after training; 0: no evaluation
    evaluate_every_env_frames: int = 0  # env frames; period of evaluations in training; 0: none
    periodic_evaluation_episodes: int = 10  # episodes; per task, in each periodic evaluation

    def __post_init__(self):
        config_checks.check_types(self)
        config_checks.check_range(self, "env_frames", 1)
        config_checks.check_range(self, "seed", 0, 2_000_000_000, "environments count up from it")
        config_checks.check_range(self, "evaluation_episodes", 0)
        config_checks.check_range(self, "evaluate_every_env_frames", 0)
        config_checks.check_range(self, "periodic_evaluation_episodes", 1)
        config_checks.check_range(self, "replay_port", 0, 65_535, "0 takes a free port")
        for name, year in (
            ("checkpoint_minutes", 525_600),
            ("replay_checkpoint_minutes", 525_600),
            ("metrics_seconds", 31_536_000),
        ):
            config_checks.check_range(self, name, maximum=year, reason="a year", above=0)


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """Everything that defines a run."""

    agent: agent_config.AgentConfig
    environment: environment_config.EnvironmentConfig
    replay: schemes_base.ReplayScheme
    learner: learner_config.LearnerConfig
    run: Config
    cluster: cluster_config.ClusterConfig = cluster_config.ClusterConfig()

    def __post_init__(self):
        self.replay.check_episode_length(self.environment.max_steps_per_episode)
        period = self.run.evaluate_every_env_frames
        unroll_frames = self.replay.unroll_length * self.environment.action_repeat
        if 0 < period < unroll_frames:
            raise errors.ConfigError(
                f"config.run: evaluate_every_env_frames must be 0 or at least {unroll_frames}, the "
                f"frames of an unroll, got {period}."
            )
        with config_choices.in_section("cluster"):
            if not self.cluster.actors:
                self.cluster.check_defaults(
                    ("envs_per_actor", "address", "learners"),
                    "without cluster.actors, which needs Ray",
                )
            batch_size = self.share_of_replay.batch_size
        if batch_size % self.learner.num_devices:
            raise errors.ConfigError(
                f"config.learner: num_devices must divide the {batch_size} unrolls of a learner's "
                f"batch, got {self.learner.num_devices}."
            )
        with config_choices.in_section("agent"):
            self._check_scheme()
        if self.run.serial:
            with config_choices.in_section("run"):
                self._check_serial()

    def _check_scheme(self) -> None:
        agent, replay = self.agent, self.replay
        if replay.uses_sequences != agent.uses_sequences:
            fitting = [
                name
                for name in schemes.names()
                if schemes.config_class(name).uses_sequences == agent.uses_sequences
            ]
            raise errors.ConfigError(
                f"replay.scheme must be {' or '.join(fitting)} for agent.name {agent.name!r}, got "
                f"{replay.scheme!r}. Use --config.replay.scheme={fitting[0]}"
            )
        if replay.burn_in and getattr(agent, "core", "") == "none":
            raise errors.ConfigError(
                f"replay.burn_in must be 0 for agent.core 'none', which has no state, got "
                f"{replay.burn_in}. Use --config.replay.burn_in=0"
            )
        agent.check_entries(replay.scheme, replay.online_entries, replay.replayed_entries)

    def _check_serial(self) -> None:
        fitting = [
            name
            for name in schemes.names()
            if (scheme := schemes.config_class(name)).supports_serial
            and scheme.uses_sequences == self.replay.uses_sequences
        ]
        wrong, remedy = "", ""
        if not self.replay.supports_serial:
            wrong = f"replay.scheme {self.replay.scheme!r}, whose batches would differ"
            remedy = f"replay.scheme={fitting[0]}"
        elif self.cluster.actors:
            wrong, remedy = f"cluster.actors {self.cluster.actors}", "cluster.actors=0"
        elif self.replay.address:
            wrong, remedy = f"replay.address {self.replay.address!r}", "replay.address="
        if wrong:
            raise errors.ConfigError(
                f"serial must be False for {wrong}, got True. Use --config.{remedy}"
            )

    @property
    def share_of_replay(self) -> schemes_base.ReplayScheme:
        """The replay scheme with one learner's share of each batch."""
        learners = self.cluster.learners
        return self.replay if learners == 1 else self.replay.per_learner(learners)

    @property
    def total_agent_steps(self) -> int:
        """The run's budget in agent steps."""
        return -(-self.run.env_frames // self.environment.action_repeat)

    @property
    def max_unrolls_per_episode(self) -> int:
        """Unrolls of the longest episode; 0 if its length is unknown."""
        steps = self.environment.max_steps_per_episode
        return -(-steps // self.replay.unroll_length)


def parse(values: Mapping[str, Mapping[str, Any]]) -> RunConfig:
    """Builds a `RunConfig` from section -> key -> value, or raises ConfigError with the key."""
    classes = section_classes(values)
    _check_names("section", values, classes)
    return RunConfig(
        **{name: parse_section(name, section, values) for name, section in classes.items()}
    )


def user_code_of(values: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Returns the paths of agent, torso, suite and scheme that `parse` or a run imports."""
    keys = [(name, choice) for name, (choice, _) in config_choices.CHOICES.items()]
    chosen = [values.get(name, {}).get(key) for name, key in (*keys, ("agent", "torso"))]
    return tuple(filter(user_code.is_path, chosen))


def read_trusted(
    workdir: pathlib.Path, trust_config: bool, named: Collection[str] = ()
) -> RunConfig:
    """Returns the configuration of an existing run.

    Raises:
      WorkdirError: If the directory holds no run.
      UntrustedError: If the file has code that the user has not named, and `trust_config` is False.
    """
    values, source = run_directory.read_config(workdir), workdir / run_directory.CONFIG_FILE
    if not trust_config:
        user_code.check_trusted(source, user_code_of(values), named)
    config = parse(values)
    if not trust_config:
        user_code.check_trusted(source, config.environment.user_code(), named)
    return config


def section_classes(values: Mapping[str, Mapping[str, Any]]) -> dict[str, type]:
    """Returns the dataclass of each section, for the agent, suite and scheme in the values.

    Raises:
      ConfigError: If values are not sections of keys, or an agent, suite or scheme is unknown.
    """
    check_nesting(values)
    classes: dict[str, Any] = {field.name: field.type for field in dataclasses.fields(RunConfig)}
    for section, (choice, known) in config_choices.CHOICES.items():
        chosen = values.get(section, {}).get(choice, known.DEFAULT)
        classes[section] = config_choices.chosen_class(section, chosen)
    return classes


def defaults(values: Mapping[str, Mapping[str, Any]], **others: type) -> dict[str, dict[str, Any]]:
    """Returns the default of each key of `section_classes` and of dataclasses of other sections."""
    return {name: _defaults(known) for name, known in (section_classes(values) | others).items()}


def _defaults(section_class: Any) -> dict[str, Any]:
    missing = dataclasses.MISSING
    found = {}
    for field in dataclasses.fields(section_class):
        if field.default is not missing:
            found[field.name] = field.default
        elif field.default_factory is not missing:
            found[field.name] = field.default_factory()
    return found


def check_nesting(values: Any) -> None:
    """Raises ConfigError unless values are mappings, section -> key -> value, with text keys."""
    if not isinstance(values, Mapping):
        raise errors.ConfigError(f"the config must have sections, such as run, got {values!r}.")
    for name, section in values.items():
        if not isinstance(section, Mapping):
            raise errors.ConfigError(f"config.{name} must have keys with values, got {section!r}.")
        for key in (name, *section):
            if not isinstance(key, str):
                raise errors.ConfigError(f"config.{name} must have texts as keys, got {key!r}.")


def parse_section(
    name: str, section_class: type[Section], values: Mapping[str, Mapping[str, Any]]
) -> Section:
    """Builds the dataclass of one section; see `parse`."""
    check_keys(name, section_class, values)
    given = values.get(name, {})
    known = {**_defaults(section_class), **given}
    for field in dataclasses.fields(cast(Any, section_class)):
        if field.name not in known:
            raise errors.ConfigError(
                f"config.{name}: {field.name} must be given, because it has no default. Use "
                f"--config.{name}.{field.name}=VALUE."
            )
    with config_choices.in_section(name):
        return section_class(**given)


def check_keys(name: str, section_class: type, values: Mapping[str, Mapping[str, Any]]) -> None:
    """Raises ConfigError, which names the key, for a key that the dataclass of a section lacks."""
    section = values.get(name, {})
    known = [field.name for field in dataclasses.fields(cast(Any, section_class))]
    if name == "replay":
        _check_scheme_keys(section, known)
    (choice, _), remark = config_choices.CHOICES.get(name, ("", None)), ""
    if user_code.is_path(section.get(choice)):
        owner = f"{section_class.__module__}.{section_class.__qualname__}"
        remark = f" (the keys of {section[choice]} are the fields of {owner})"
    elif choice in section:  # The file may have the keys of another agent or suite.
        remark = f" (where {choice} is {section[choice]!r}: use a file of configs/ made for it)"
    _check_names(f"{name} key", section, known, remark)


def _check_scheme_keys(section: Mapping[str, Any], known: Iterable[str]) -> None:
    scheme = section.get("scheme", schemes.DEFAULT)
    for key in section:
        if key not in known and (owners := schemes.schemes_with(key)):
            raise errors.ConfigError(
                f"config.replay: {key} must be a key of scheme {scheme!r}, but only "
                f"{', '.join(owners)} {'have' if len(owners) > 1 else 'has'} it. Leave it out, or "
                f"use --config.replay.scheme={owners[0]}"
            )


def _check_names(
    what: str, given: Mapping[str, Any], known: Iterable[str], remark: str = ""
) -> None:
    for name in given:
        if name not in known:
            hint = config_values.hint(name, known)
            raise errors.ConfigError(f"config has no {what} {name!r}: {hint}{remark}")

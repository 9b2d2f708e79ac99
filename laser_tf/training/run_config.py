"""A run's whole configuration: one validated dataclass for each section of a file in `configs/`."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from laser_tf import config_checks, config_values, errors
from laser_tf.agents import agent_config, registry
from laser_tf.environments import environment_config, suites
from laser_tf.replay.schemes import base as schemes_base
from laser_tf.replay.schemes import registry as schemes
from laser_tf.training import cluster_config, learner_config

Section = TypeVar("Section")

_LONGEST_PERIODS = {"minutes": 525_600, "seconds": 31_536_000}  # a year
# Keys that choose the other keys of a section.
_CHOICES = {"agent": "kind", "environment": "suite", "replay": "scheme"}


@dataclasses.dataclass(frozen=True)
class Config:
    """How long a run lasts and what it leaves behind.

    Raises:
      ValueError: for a value out of range; the message names it and the remedy.
    """

    env_frames: int = 3_000_000  # env frames; the run's budget
    seed: int = 1  # seed; of weights, actions and environments
    checkpoint_minutes: float = 5.0  # minutes; between checkpoints of all but replay
    replay_checkpoint_minutes: float = 30.0  # minutes; between checkpoints of replay
    metrics_seconds: float = 10.0  # seconds; between rows in TensorBoard, 200 in all at least
    replay_port: int = 0  # port; of the embedded Reverb server; 0 takes a free one
    evaluation_episodes: int = 30  # episodes; of each task after training; 0 for none
    evaluate_every_env_frames: int = 0  # env frames; between evaluations beside training; 0: none
    evaluation_episodes_beside: int = 10  # episodes; of each task in each of these

    def __post_init__(self):
        config_checks.check_types(self)
        config_checks.check_range(self, "env_frames", 1)
        config_checks.check_range(self, "seed", 0, 2_000_000_000, "games count up from it")
        config_checks.check_range(self, "evaluation_episodes", 0)
        config_checks.check_range(self, "evaluate_every_env_frames", 0)
        config_checks.check_range(self, "evaluation_episodes_beside", 1)
        if not 0 <= self.replay_port < 65536:
            raise errors.ConfigError(
                f"replay_port is {self.replay_port}: use 1 to 65535, or 0 for any"
            )
        for name in ("checkpoint_minutes", "replay_checkpoint_minutes", "metrics_seconds"):
            value, longest = getattr(self, name), _LONGEST_PERIODS[name.rpartition("_")[2]]
            if not 0 < value <= longest:
                raise errors.ConfigError(
                    f"{name} is {value}: use a value above 0, up to {longest:,}, which is a year"
                )


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
                f"config.run: evaluate_every_env_frames is {period}, but weights change after an "
                f"unroll of {unroll_frames} at the earliest: use so many or more, or 0 for none"
            )
        if not self.cluster.actors:
            try:
                self.cluster.check_one_process()
            except ValueError as error:
                raise errors.ConfigError(f"config.cluster: {error}") from None
        self._check_shares()
        try:
            self.agent.check_scheme(self.replay.scheme)
        except ValueError as error:
            raise errors.ConfigError(f"config.agent: {error}") from None

    def _check_shares(self) -> None:
        try:
            share = self.share_of_replay.batch_size
        except ValueError as error:
            learners = self.cluster.learners
            raise errors.ConfigError(f"config.cluster: learners is {learners}: {error}") from None
        if share % self.learner.replicas:
            raise errors.ConfigError(
                f"config.learner: replicas is {self.learner.replicas}, but a learner's batch has "
                f"{share} unrolls: use a divisor of it, since all take equal shares"
            )

    @property
    def share_of_replay(self) -> schemes_base.ReplayScheme:
        """What one learner of `cluster.learners` takes of each batch."""
        learners = self.cluster.learners
        return self.replay if learners == 1 else self.replay.share(learners)

    @property
    def total_agent_steps(self) -> int:
        """The run's budget in agent steps."""
        return -(-self.run.env_frames // self.environment.action_repeat)

    @property
    def max_unrolls_per_episode(self) -> int:
        """Unrolls that the longest episode is cut into; 0 where its length is not known."""
        steps = self.environment.max_steps_per_episode
        return -(-steps // self.replay.unroll_length)


def parse(values: Mapping[str, Mapping[str, Any]]) -> RunConfig:
    """Builds a `RunConfig` from nested mappings, one for each section.

    Raises:
      ValueError: for an unknown, a missing or an invalid key; the message names `section.key`.
    """
    classes = section_classes(values)
    _check_names("section", values, classes)
    return RunConfig(
        **{name: parse_section(name, section, values) for name, section in classes.items()}
    )


def section_classes(values: Mapping[str, Mapping[str, Any]]) -> dict[str, type]:
    """The dataclass of each section, for the agent and the suite that the values name.

    Raises:
      ValueError: if the values are not sections of keys, or name what there is not.
    """
    check_nesting(values)
    classes: dict[str, Any] = {field.name: field.type for field in dataclasses.fields(RunConfig)}
    for section, known in (("agent", registry), ("environment", suites), ("replay", schemes)):
        chosen = values.get(section, {}).get(_CHOICES[section], known.DEFAULT)
        try:
            classes[section] = known.config_class(chosen)
        except ValueError as error:
            raise errors.ConfigError(f"config.{section}: {error}") from None
    return classes


def defaults(values: Mapping[str, Mapping[str, Any]], **others: type) -> dict[str, dict[str, Any]]:
    """What each key is taken as that a configuration does not name, nested.

    Args:
      values: a configuration, for the agent and the suite that it names.
      **others: dataclasses of sections beside a run's.

    Raises:
      ValueError: as of `section_classes`.
    """
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
    """Checks that values are sections of keys, all named by text.

    Raises:
      ValueError: if they are not.
    """
    if not isinstance(values, Mapping):
        raise errors.ConfigError(f"the config is {values!r}: it must have sections, such as run")
    for name, section in values.items():
        if not isinstance(section, Mapping):
            raise errors.ConfigError(f"config.{name} is {section!r}: it must have keys with values")
        for key in (name, *section):
            if not isinstance(key, str):
                raise errors.ConfigError(f"config.{name} has the key {key!r}: keys are texts")


def parse_section(
    name: str, section_class: type[Section], values: Mapping[str, Mapping[str, Any]]
) -> Section:
    """Builds one section's dataclass from what `values` say of it.

    Raises:
      ValueError: for an unknown, a missing or an invalid key; the message names `section.key`.
    """
    section, known = dict(values.get(name, {})), cast(Any, section_class)
    if name == "replay":
        _check_scheme_keys(section, [field.name for field in dataclasses.fields(known)])
    choice, remark = _CHOICES.get(name), ""
    if choice in section:  # perhaps beside a file of configs/ that has another one's keys
        remark = f" (where {choice} is {section[choice]!r}: use a file of configs/ made for it)"
    _check_names(name + " key", section, [f.name for f in dataclasses.fields(known)], remark)
    try:
        return section_class(**section)
    except ValueError as error:
        raise errors.ConfigError(f"config.{name}: {error}") from None


def _check_scheme_keys(section: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raises ValueError for a key of another replay scheme."""
    scheme = section.get("scheme", schemes.DEFAULT)
    for key in section:
        if key not in known and (owners := schemes.schemes_with(key)):
            raise errors.ConfigError(
                f"config.replay: {key} must be a key of scheme {scheme!r}, but only "
                f"{', '.join(owners)} {'have' if len(owners) > 1 else 'has'} it. Leave it out, or "
                f"use --config.replay.scheme={owners[0]}"
            )


def override(
    values: Mapping[str, Mapping[str, Any]], changes: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Returns a copy of nested values with other values under keys `section.key`.

    A change of `replay.scheme` drops the keys that the new scheme does not have.

    Raises:
      ValueError: If there is no such scheme.
    """
    result = config_values.override(values, {})
    if scheme := changes.get("replay.scheme"):
        result["replay"] = schemes.switched(result.get("replay", {}), scheme)
    return config_values.override(result, changes)


def _check_names(
    what: str, given: Mapping[str, Any], known: Iterable[str], remark: str = ""
) -> None:
    for name in given:
        if name not in known:
            close = config_values.close_names(name, known)
            hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(known)}"
            raise errors.ConfigError(f"config has no {what} {name!r}: {hint}{remark}")

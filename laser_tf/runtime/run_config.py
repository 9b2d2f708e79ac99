"""A run's whole configuration: one validated dataclass for each section of a file in `configs/`."""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from laser_tf import config_checks
from laser_tf.agents import laser_config, r2d2_config
from laser_tf.environments import environment_config
from laser_tf.replay import replay_config
from laser_tf.runtime import learner_config

Section = TypeVar("Section")
AgentConfig = laser_config.LaserConfig | r2d2_config.R2D2Config
_AGENTS: dict[str, type[AgentConfig]] = {
    laser_config.KIND: laser_config.LaserConfig,
    r2d2_config.KIND: r2d2_config.R2D2Config,
}


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
    metrics_seconds: float = 10.0  # seconds; between rows in TensorBoard
    replay_port: int = 0  # port; of the embedded Reverb server; 0 takes a free one
    evaluation_episodes: int = 30  # episodes; of each task after training; 0 for none

    def __post_init__(self):
        config_checks.check_types(self)
        config_checks.check_range(self, "env_frames", 1)
        config_checks.check_range(self, "seed", 0, 2_000_000_000, "games count up from it")
        config_checks.check_range(self, "evaluation_episodes", 0)
        if not 0 <= self.replay_port < 65536:
            raise ValueError(f"replay_port is {self.replay_port}: use 1 to 65535, or 0 for any")
        for name in ("checkpoint_minutes", "replay_checkpoint_minutes", "metrics_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}: use a value above 0")


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """Everything that defines a run."""

    agent: AgentConfig
    environment: environment_config.EnvironmentConfig
    replay: replay_config.ReplayConfig
    learner: learner_config.LearnerConfig
    run: Config

    def __post_init__(self):
        longest, capacity = self.environment.max_steps_per_episode, self.replay.capacity
        if self.replay.replay_table == replay_config.EPISODES and longest > capacity:
            raise ValueError(
                f"config.replay: capacity is {capacity} agent steps, but an episode can have "
                f"{longest}: raise replay.capacity or lower environment.max_frames_per_episode"
            )
        if self.agent.kind == laser_config.KIND:
            self._check_laser()
        elif not self.replay.sequence_length:
            raise ValueError(
                f"config.replay: sequence_length is 0: {self.agent.kind} learns from sequences; "
                "use e.g. 80 agent steps"
            )

    def _check_laser(self) -> None:
        if self.replay.sequence_length:
            raise ValueError(
                f"config.replay: sequence_length is {self.replay.sequence_length}: laser learns "
                "from unrolls and whole episodes; use 0"
            )
        cost, on_replay = self.agent.entropy_cost, self.agent.entropy_on_replay
        if self.replay.new_steps and cost and not on_replay:
            raise ValueError(
                f"config.agent: entropy_cost is {cost}, but replay.new_steps above 0 leaves no "
                "online rows, which alone are in the entropy term: use "
                "agent.entropy_on_replay=true, or entropy_cost 0"
            )

    @property
    def total_agent_steps(self) -> int:
        """The run's budget in agent steps."""
        return -(-self.run.env_frames // self.environment.action_repeat)

    @property
    def max_unrolls_per_episode(self) -> int:
        """Unrolls that the longest episode is cut into."""
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
    """The dataclass of each section, whose agent is the one that the values name.

    Raises:
      ValueError: if the values are not sections of keys, or name no agent that there is.
    """
    check_nesting(values)
    kind = values.get("agent", {}).get("kind", laser_config.KIND)
    if kind not in tuple(_AGENTS):
        raise ValueError(
            f"config.agent: kind is {kind!r}: choose one of {', '.join(map(repr, _AGENTS))}"
        )
    classes = {field.name: field.type for field in dataclasses.fields(RunConfig)}
    return classes | {"agent": _AGENTS[kind]}


def check_nesting(values: Any) -> None:
    """Checks that values are sections of keys, all named by text.

    Raises:
      ValueError: if they are not.
    """
    if not isinstance(values, Mapping):
        raise ValueError(f"the config is {values!r}: it must have sections, such as run")
    for name, section in values.items():
        if not isinstance(section, Mapping):
            raise ValueError(f"config.{name} is {section!r}: it must have keys with values")
        for key in (name, *section):
            if not isinstance(key, str):
                raise ValueError(f"config.{name} has the key {key!r}: keys are texts")


def parse_section(
    name: str, section_class: type[Section], values: Mapping[str, Mapping[str, Any]]
) -> Section:
    """Builds one section's dataclass from what `values` say of it.

    Raises:
      ValueError: for an unknown, a missing or an invalid key; the message names `section.key`.
    """
    section = dict(values.get(name, {}))
    _check_names(name + " key", section, [f.name for f in dataclasses.fields(section_class)])
    try:
        return section_class(**section)
    except ValueError as error:
        raise ValueError(f"config.{name}: {error}") from None


def _check_names(what: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, list(known), n=3)
            hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(known)}"
            raise ValueError(f"config has no {what} {name!r}: {hint}")


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, with keys `section.key`."""
    flat = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat

"""Configuration of the processes and machines of a run."""

import dataclasses
import re
from collections.abc import Sequence

from laser_tf import config_checks, errors

MAX_PROCESSES = 10_000
_ADDRESS = re.compile(r"auto|\[?[^\s\[\]/]+\]?:\d+")


@dataclasses.dataclass(frozen=True)
class ClusterConfig:
    """Processes and machines of a run, which may change when the run is resumed."""

    actors: int = 0  # processes; that act for the learner; 0: a run of one process, without Ray
    envs_per_actor: int = 0  # environments; per actor; 0: environment.num_envs
    address: str = ""  # host:port of Ray's head; auto: Ray on this machine; empty: new Ray
    learners: int = 1  # processes; share each batch and take the same update
    actor_cpus: float = 1.0  # CPUs; reserved by Ray for each actor
    learner_cpus: float = 1.0  # CPUs; reserved by Ray for each learner
    learner_gpus: float = 0.0  # GPUs; reserved by Ray for each learner
    replay_cpus: float = 1.0  # CPUs; reserved by Ray for a replay that the run starts
    evaluator_cpus: float = 1.0  # CPUs; reserved by Ray for the evaluator, if any
    wait_minutes: float = 0.0  # minutes; max wait for machines to join; 0: fail at once
    weights_seconds: float = 0.2  # seconds; period at which actors receive weights

    def __post_init__(self):
        config_checks.check_types(self)
        config_checks.check_range(self, "learners", 1)
        for name in ("actors", "envs_per_actor", "learners", "learner_gpus"):
            config_checks.check_range(self, name, 0, MAX_PROCESSES)
        for name in ("actor_cpus", "learner_cpus", "replay_cpus", "evaluator_cpus"):
            config_checks.check_range(self, name, 0, MAX_PROCESSES)
        if self.learner_gpus > 1 and self.learner_gpus % 1:
            raise errors.ConfigError(
                f"learner_gpus must be an integer or below 1, got {self.learner_gpus}."
            )
        config_checks.check_range(self, "wait_minutes", 0, 10_000)
        config_checks.check_range(self, "weights_seconds", maximum=3_600, above=0)
        if self.address and not _ADDRESS.fullmatch(self.address):
            raise errors.ConfigError(
                f"address must be host:port of Ray's head, auto, or empty for a new Ray, got "
                f"{self.address!r}."
            )

    def check_defaults(self, names: Sequence[str], reason: str) -> None:
        """Raises ConfigError for a key of `names` without its default, which `reason` explains."""
        for name in names:
            value, default = getattr(self, name), getattr(type(self), name)
            if value != default:
                raise errors.ConfigError(f"{name} must be {default!r} {reason}, got {value!r}.")

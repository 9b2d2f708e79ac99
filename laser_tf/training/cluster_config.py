"""How a run is spread over processes and machines."""

import dataclasses
import re

from laser_tf import config_checks, errors

MOST_PROCESSES = 10_000
_ADDRESS = re.compile(r"auto|\[?[^\s\[\]/]+\]?:\d+")


@dataclasses.dataclass(frozen=True)
class ClusterConfig:
    """How a run is spread; a resumed run may be spread in another way.

    Raises:
      ValueError: for a value out of range; the message names it and the remedy.
    """

    actors: int = 0  # processes; that act for the learner; 0: one process does all, without Ray
    envs_per_actor: int = 0  # environments; of each actor; 0: environment.num_envs
    address: str = ""  # host:port; of Ray's head, or auto: the one here; none: Ray for this run
    learners: int = 1  # processes; that share each batch, and update as one
    actor_cpus: float = 1.0  # CPUs; that Ray keeps for each actor
    learner_cpus: float = 1.0  # CPUs; that Ray keeps for each learner
    learner_gpus: float = 0.0  # GPUs; that Ray keeps for each learner
    replay_cpus: float = 1.0  # CPUs; that Ray keeps for replay, where it is the run's own
    evaluator_cpus: float = 1.0  # CPUs; that Ray keeps for the evaluator, where there is one
    wait_minutes: float = 0.0  # minutes; for machines with room to join; 0: refuse the run at once
    weights_seconds: float = 0.2  # seconds; from one copy of the weights for actors to the next

    def __post_init__(self):
        config_checks.check_types(self)
        for name in ("actors", "envs_per_actor"):
            config_checks.check_range(self, name, 0, MOST_PROCESSES, "one run starts no more")
        config_checks.check_range(self, "learners", 1, MOST_PROCESSES, "one run starts no more")
        for name in ("actor_cpus", "learner_cpus", "learner_gpus", "replay_cpus", "evaluator_cpus"):
            if not 0 <= getattr(self, name) <= MOST_PROCESSES:
                raise errors.ConfigError(
                    f"{name} is {getattr(self, name)}: use 0 to {MOST_PROCESSES}"
                )
        if self.learner_gpus > 1 and self.learner_gpus % 1:
            raise errors.ConfigError(
                f"learner_gpus is {self.learner_gpus}: use a part of one GPU, or whole ones"
            )
        if not 0 <= self.wait_minutes <= 10_000:
            raise errors.ConfigError(f"wait_minutes is {self.wait_minutes}: use 0 to 10000")
        if not 0 < self.weights_seconds <= 3_600:
            raise errors.ConfigError(
                f"weights_seconds is {self.weights_seconds}: use above 0, up to 3600"
            )
        if self.address and not _ADDRESS.fullmatch(self.address):
            raise errors.ConfigError(
                f"address is {self.address!r}: use host:port of Ray's head, auto, or nothing for a "
                "Ray of the run's own"
            )

    def check_one_process(self) -> None:
        """Checks that a run of one process asks for nothing that needs several.

        Raises:
          ValueError: if it does.
        """
        for name, default in (("envs_per_actor", 0), ("address", ""), ("learners", 1)):
            if getattr(self, name) != default:
                raise errors.ConfigError(
                    f"{name} is {getattr(self, name)!r}, but actors is 0, one process: set "
                    "cluster.actors"
                )

    def check_sweep(self) -> None:
        """Checks that a sweep's agents are one process each.

        Raises:
          ValueError: if they are to be more.
        """
        for name, default in (("actors", 0), ("envs_per_actor", 0), ("learners", 1)):
            if getattr(self, name) != default:
                raise errors.ConfigError(
                    f"{name} is {getattr(self, name)!r}, but each agent of a sweep acts and learns "
                    f"in one process: use {default}"
                )

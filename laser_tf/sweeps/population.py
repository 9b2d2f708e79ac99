"""Population based training (Jaderberg et al. 2017): which member copies which weights.

Pure bookkeeping, one decision at a time. No member ever waits for another, so one that has died
holds nobody up; what it last reported stays among the others' until the run ends.
"""

import dataclasses
import math
import random
import types
from collections.abc import Mapping

from laser_tf import config_checks, errors
from laser_tf.sweeps import lineage
from laser_tf.training import learner_config

METHODS = ("none", "pbt")
# A perturbed value outside these is not taken: float32 holds it, its inverse and its square root.
SMALLEST, LARGEST = 1e-30, 1e30


@dataclasses.dataclass(frozen=True)
class Config:
    """How a population changes while it trains.

    The defaults are Jaderberg et al.'s for reinforcement learning, with IMPALA's factors (theirs
    are 1.2 and 0.8). IMPALA's
    own setting (Espeholt et al. 2018, appendix F) is truncation_fraction 1, copy_margin 0.05 of a
    mean capped human normalised score, perturbation_probability 0.33, explore_without_copy, and
    burn_in_env_frames 20,000,000; it decides every 5,000 episodes.

    Raises:
      ValueError: for a value out of range; the message names it and the remedy.
    """

    method: str = "none"  # pbt, or none: nobody copies, nothing is recorded
    ready_env_frames: int = 1_000_000  # env frames; of a member between decisions about it
    burn_in_env_frames: int = 0  # env frames; of a member before the first decision about it
    truncation_fraction: float = 0.2  # fraction; the lowest copy from as many highest; 1: all
    copy_margin: float = 0.0  # fitness; by which a parent must be better, and more
    perturbation_factors: tuple[float, ...] = (1.2, 1 / 1.2)  # factors; of which one is drawn
    perturbation_probability: float = 1.0  # probability; of each hyper-parameter by itself
    explore_without_copy: bool = False  # whether those perturb, too, that keep their weights
    # IMPALA's; LASER fixes the epsilon on DMLab-30. A sweep that names none takes those that its
    # members have: see `sweep_config`.
    tuned: tuple[str, ...] = learner_config.TUNABLE  # hyper-parameters that change, as section.key
    seed: int = 1  # seed; of the draws

    def __post_init__(self):
        config_checks.check_types(self)
        config_checks.check_choice(self, "method", METHODS)
        config_checks.check_range(self, "ready_env_frames", 1)
        config_checks.check_range(self, "burn_in_env_frames", 0)
        config_checks.check_range(self, "seed", 0)
        for name in ("truncation_fraction", "perturbation_probability"):
            if not 0 < getattr(self, name) <= 1:
                raise errors.ConfigError(
                    f"{name} is {getattr(self, name)}: use a value above 0, at most 1"
                )
        config_checks.check_range(self, "copy_margin", 0)
        factors = self.perturbation_factors
        if not factors or not all(factor > 0 for factor in factors):
            raise errors.ConfigError(
                f"perturbation_factors is {factors}: use some above 0, e.g. (1.2, 0.8)"
            )
        columns = (*lineage.COLUMNS, *self.tuned)
        if not self.tuned or not all(self.tuned) or len({*columns}) < len(columns):
            raise errors.ConfigError(
                f"tuned is {self.tuned}: name one or more hyper-parameters, each once, e.g. "
                "('learner.learning_rate', 'agent.entropy_cost')"
            )


class Population:
    """What is known of each member, which is its latest record; not for several threads at once."""

    def __init__(self, config: Config, log: lineage.Lineage):
        """Goes on from the records that the log holds already.

        Args:
          config: the population's.
          log: of the same tuned hyper-parameters.
        """
        self._config = config
        self._log = log
        self._latest = {record.member: record for record in log.records}
        self._copies = {record.member: record for record in log.records if record.parent}

    def next_ready(self, member: str) -> int:
        """The env frames from which on a member is due; 0 for one that is not known yet."""
        if member not in self._latest:
            return 0
        passed = self._latest[member].env_frames // self._config.ready_env_frames
        return max(self._config.burn_in_env_frames, (passed + 1) * self._config.ready_env_frames)

    def decide(
        self,
        member: str,
        env_frames: int,
        fitness: float,
        hyperparameters: Mapping[str, float],
        others: Mapping[str, float] = types.MappingProxyType({}),
    ) -> lineage.Record:
        """What a member goes on with. Nothing is known of it, or changed by it, before `record`.

        The decision about a member without records introduces it and changes nothing; ask for it
        when the member starts, and for the others from `next_ready` on.

        Args:
          member: its name.
          env_frames: that the member has learned from, before action repeat.
          fitness: of its present weights, higher is better; not finite: unknown. Such a member
            copies nobody and is copied by nobody.
          hyperparameters: that it uses; others than the tuned ones are left out.
          others: fitness of other members now, by which they are ranked; of one that is not among
            them, or not finite, that of its latest record.

        Raises:
          ValueError: for values that no member of this population can have.
        """
        own = self._checked(member, env_frames, hyperparameters)
        known = float(fitness) if math.isfinite(fitness) else math.nan
        parent, values = self._choose(member, known, own, others)
        return lineage.Record(env_frames, member, parent, known, values)

    def record(self, decided: lineage.Record) -> None:
        """Makes a decision hold: the member goes on with it, and others may copy that.

        Raises:
          OSError: if it cannot be written; it does not hold then.
        """
        self._log.append(decided)
        self._latest[decided.member] = decided
        if decided.parent:
            self._copies[decided.member] = decided

    def latest(self, member: str) -> lineage.Record | None:
        """The newest decision about a member that holds."""
        return self._latest.get(member)

    def latest_copy(self, member: str) -> lineage.Record | None:
        """The newest one by which it copied another."""
        return self._copies.get(member)

    def _choose(
        self, member: str, fitness: float, own: dict[str, float], others: Mapping[str, float]
    ) -> tuple[str | None, dict[str, float]]:
        """Whose weights the member copies, None for its own, and the hyper-parameters."""
        if member not in self._latest or math.isnan(fitness):
            return None, own
        # From the number of records, so that a restarted population draws what it would have drawn.
        generator = random.Random(f"{self._config.seed}/{len(self._log.records)}")
        recorded = {
            name: record.fitness
            for name, record in self._latest.items()
            if not math.isnan(record.fitness)
        }
        # Records are as old as a ready interval: while all improve, whoever is asked first would be
        # above them all and never copy.
        present = {
            name: fitness_now
            for name, fitness_now in others.items()
            if name in recorded and math.isfinite(fitness_now)
        }
        ranked = {**recorded, **present, member: fitness}
        parent = select_parent(member, ranked, self._config, generator)
        # What it would get are the weights of the parent's record, which may be worse by now.
        if parent and recorded[parent] - fitness > self._config.copy_margin:
            inherited = self._latest[parent].hyperparameters
            return parent, explore(inherited, self._config, generator)
        if self._config.explore_without_copy:
            return None, explore(own, self._config, generator)
        return None, own

    def _checked(
        self, member: str, env_frames: int, hyperparameters: Mapping[str, float]
    ) -> dict[str, float]:
        if not member or not member.isprintable():
            raise errors.ConfigError(f"the member's name is {member!r}: use printable characters")
        if env_frames < 0:
            raise errors.ConfigError(
                f"env_frames of member {member} is {env_frames}: use 0 or more"
            )
        for name in self._config.tuned:
            if name not in hyperparameters:
                raise errors.ConfigError(
                    f"member {member} has no {name} to tune, only {', '.join(hyperparameters)}: "
                    "take it out of population.tuned"
                )
            if not 0 < hyperparameters[name] < math.inf:
                raise errors.ConfigError(
                    f"{name} of member {member} is {hyperparameters[name]}, which no factor can "
                    "tune: use a finite value above 0, or take it out of population.tuned"
                )
        return {name: float(hyperparameters[name]) for name in self._config.tuned}


def select_parent(
    member: str, fitnesses: Mapping[str, float], config: Config, generator: random.Random
) -> str | None:
    """Truncation selection: whom a member copies, or None.

    With a fraction of 1 it is IMPALA's rule: any other member, if it is better enough.

    Args:
      member: one of the names in `fitnesses`.
      fitnesses: all finite.
      config: of the population.
      generator: of the draws.
    """
    order = sorted(fitnesses)
    generator.shuffle(order)  # equals fall on either side of a boundary, whatever their names
    order.sort(key=fitnesses.__getitem__)
    # Rounded first: 0.07 * 100 is a little more than 7.
    count = max(1, math.ceil(round(config.truncation_fraction * len(order), 9)))
    candidates = [name for name in order[-count:] if name != member]
    if member not in order[:count] or not candidates:
        return None
    parent = generator.choice(candidates)
    return parent if fitnesses[parent] - fitnesses[member] > config.copy_margin else None


def explore(
    values: Mapping[str, float], config: Config, generator: random.Random
) -> dict[str, float]:
    """Perturbs hyper-parameters, each by itself, by a factor drawn from the configured ones."""
    explored = {}
    for name, value in values.items():
        is_perturbed = generator.random() < config.perturbation_probability
        factor = generator.choice(config.perturbation_factors) if is_perturbed else 1.0
        explored[name] = value * factor if SMALLEST <= value * factor <= LARGEST else value
    return explored

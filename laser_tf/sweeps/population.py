"""Population based training (Jaderberg et al. 2017): which member copies which weights.

No member waits for another one. The last report of a failed member stays in the ranking until the
run ends.
"""

import dataclasses
import math
import pathlib
import random
from collections.abc import Mapping

from laser_tf import config_checks, errors
from laser_tf.sweeps import lineage
from laser_tf.training import learner_config

METHODS = ("none", "pbt")
# Bounds of perturbed values: float32 holds the value, its inverse and its square root.
SMALLEST, LARGEST = 1e-30, 1e30


@dataclasses.dataclass(frozen=True)
class Config:
    """Changes of a population while it trains.

    The defaults are those of Jaderberg et al. for reinforcement learning, with IMPALA's factors
    instead of 1.2 and 0.8. The setting of IMPALA (Espeholt et al. 2018, appendix F) is
    truncation_fraction 1, copy_margin 0.05 of a mean capped human normalised score,
    perturbation_probability 0.33, explore_without_copy, and burn_in_env_frames 20,000,000; IMPALA
    decides every 5,000 episodes.

    Raises:
      ConfigError: If a value is out of range.
    """

    method: str = "none"  # pbt, or none: no member copies, nothing is recorded
    ready_env_frames: int = 1_000_000  # env frames; of a member between its decisions
    burn_in_env_frames: int = 0  # env frames; of a member before its first decision
    truncation_fraction: float = 0.2  # fraction; worst that copy as many best; 1: any better
    copy_margin: float = 0.0  # fitness; a parent must be better by more than this
    perturbation_factors: tuple[float, ...] = (1.2, 1 / 1.2)  # factors; one is sampled
    perturbation_probability: float = 1.0  # probability; for each hyper-parameter
    explore_without_copy: bool = False  # whether members that keep their weights perturb, too
    # IMPALA's; LASER fixes the epsilon on DMLab-30. A sweep that names none takes those that its
    # members have: see `sweep_config`.
    tuned: tuple[str, ...] = learner_config.TUNABLE  # hyper-parameters that change, as section.key
    seed: int = 1  # seed; of the decisions

    def __post_init__(self):
        config_checks.check_types(self)
        config_checks.check_choice(self, "method", METHODS)
        config_checks.check_range(self, "ready_env_frames", 1)
        config_checks.check_range(self, "burn_in_env_frames", 0)
        config_checks.check_range(self, "seed", 0)
        for name in ("truncation_fraction", "perturbation_probability"):
            config_checks.check_range(self, name, maximum=1, above=0)
        config_checks.check_range(self, "copy_margin", 0)
        factors = self.perturbation_factors
        if not factors or not all(factor > 0 for factor in factors):
            raise errors.ConfigError(
                f"perturbation_factors must be values above 0, e.g. (1.2, 0.8), got {factors}."
            )
        columns = (*lineage.COLUMNS, *self.tuned)
        if not self.tuned or not all(self.tuned) or len({*columns}) < len(columns):
            raise errors.ConfigError(
                "tuned must name hyper-parameters, each once, e.g. ('learner.learning_rate', "
                f"'agent.entropy_cost'), got {self.tuned}."
            )


class Population:
    """The decisions about all members. Not thread-safe."""

    def __init__(self, config: Config, path: pathlib.Path):
        """Continues from the lineage in a file, whose errors are those of `lineage.read`."""
        self._config = config
        self._path = path
        self.records = lineage.read(path, config.tuned)  # In force, the newest last.

    def _latest(self) -> dict[str, lineage.Record]:
        return {record.member: record for record in self.records}

    def latest(self, member: str) -> lineage.Record | None:
        """Returns the newest decision about a member."""
        return self._latest().get(member)

    def latest_copy(self, member: str) -> lineage.Record | None:
        """Returns the newest decision by which a member copied another one."""
        copies = (r for r in reversed(self.records) if r.member == member and r.parent)
        return next(copies, None)

    def next_decision_at(self, member: str) -> int:
        """Returns the env frames of the next decision about a member; 0 for a new member."""
        latest = self.latest(member)
        if latest is None:
            return 0
        passed = latest.env_frames // self._config.ready_env_frames
        return max(self._config.burn_in_env_frames, (passed + 1) * self._config.ready_env_frames)

    def decide(
        self,
        member: str,
        env_frames: int,
        fitness: float,
        hyperparameters: Mapping[str, float],
        others: Mapping[str, float],
    ) -> lineage.Record:
        """Returns a decision about a member, which is in force once it is recorded.

        The first decision introduces the member, when it starts, and changes nothing. Ask for the
        others from `next_decision_at` on. A member whose fitness is not finite does not copy and is
        not copied. The current `hyperparameters` include all tuned ones. Other members are ranked
        by their current fitness in `others`; if it is not finite, by that of their newest record.
        """
        own = {name: float(hyperparameters[name]) for name in self._config.tuned}
        kept = lineage.Record(env_frames, member, None, float(fitness), own)
        records = self._latest()
        if not math.isfinite(fitness):
            return dataclasses.replace(kept, fitness=math.nan)
        if member not in records:
            return kept
        # Seeded by the number of records, so that a restarted population decides the same.
        generator = random.Random(f"{self._config.seed}/{len(self.records)}")
        recorded = {n: r.fitness for n, r in records.items() if not math.isnan(r.fitness)}
        # Records are as old as a ready interval: while all improve, the first member to be ranked
        # would be above them all and never copy.
        present = {n: f for n, f in others.items() if n in recorded and math.isfinite(f)}
        ranked = {**recorded, **present, member: kept.fitness}
        parent = select_parent(member, ranked, self._config, generator)
        # The member would get the weights of the parent's record, which may be worse by now.
        if parent and recorded[parent] - kept.fitness > self._config.copy_margin:
            inherited = records[parent].hyperparameters
            values = explore(inherited, self._config, generator)
            return dataclasses.replace(kept, parent=parent, hyperparameters=values)
        if self._config.explore_without_copy:
            values = explore(own, self._config, generator)
            return dataclasses.replace(kept, hyperparameters=values)
        return kept

    def record(self, decided: lineage.Record) -> None:
        """Puts a decision in force, unless it cannot be written, which raises OSError."""
        lineage.write(self._path, [*self.records, decided])
        self.records.append(decided)


def select_parent(
    member: str, fitnesses: Mapping[str, float], config: Config, generator: random.Random
) -> str | None:
    """Returns the member to copy by truncation selection of finite fitnesses, or None.

    A fraction of 1 is IMPALA's rule: any other member whose fitness is higher by the margin.
    """
    order = sorted(fitnesses)
    generator.shuffle(order)  # Members of equal fitness are on either side of a boundary.
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
    """Returns hyper-parameters, each perturbed by a sampled factor."""
    explored = {}
    for name, value in values.items():
        is_perturbed = generator.random() < config.perturbation_probability
        factor = generator.choice(config.perturbation_factors) if is_perturbed else 1.0
        explored[name] = value * factor if SMALLEST <= value * factor <= LARGEST else value
    return explored

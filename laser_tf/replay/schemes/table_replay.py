"""What schemes share that sample unrolls or sequences from a Reverb table."""

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Self

from laser_tf import config_checks, errors
from laser_tf.replay.schemes import base

if TYPE_CHECKING:
    from laser_tf.replay import batch_sources, stored_unroll

CORE_STATES = ("stored", "zero")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableReplay(base.ReplayScheme):
    """Unrolls in a first in, first out table, sampled uniformly or by priorities."""

    replay_table: ClassVar[str | None] = "replay"

    capacity: int = 1_000_000  # agent steps; in replay, without the overlaps of sequences
    core_state: str = "stored"  # what replayed entries start from: stored or zero
    priority_exponent: float = 0.0  # exponent; of the loss's priorities; 0: replay is uniform
    importance_exponent: float = 1.0  # exponent; beta, of the weights that correct for priorities

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_choice(self, "core_state", CORE_STATES)
        for name in ("priority_exponent", "importance_exponent"):
            check_fraction(self, name)
        check_capacity(self)

    @property
    def sampler_exponent(self) -> float:
        """See `ReplayScheme`."""
        return self.priority_exponent

    @property
    def uses_priorities(self) -> bool:
        """See `ReplayScheme`."""
        return self.priority_exponent > 0

    @property
    def replays_stored_states(self) -> bool:
        """See `ReplayScheme`."""
        return self.core_state == "stored"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PacedReplay(TableReplay):
    """All batches are replayed, one for every `steps_per_update` steps that actors write."""

    steps_per_update: int = 80  # agent steps; that actors write for each update
    warm_up: int = 0  # agent steps; in replay before the first update

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(self, "steps_per_update", 1)
        config_checks.check_range(self, "warm_up", 0)

    @property
    def online_entries(self) -> int:
        """See `ReplayScheme`."""
        return 0

    @property
    def min_capacity(self) -> int:
        """See `ReplayScheme`; includes the warm-up."""
        return max(super().min_capacity, self.warm_up)

    @property
    def warm_up_items(self) -> int:
        """Number of items in replay before the first update."""
        return max(1, self.warm_up // self.steps_per_item)

    def check_server(self, max_items: int) -> None:
        """See `ReplayScheme`; the warm-up must fit."""
        if self.replay_table and max_items < self.warm_up_items:
            steps = max_items * self.steps_per_item
            raise errors.ConfigError(
                f"replay at {self.address} holds {steps} agent steps, less than warm_up, "
                f"{self.warm_up}: start the server with a larger replay.capacity, or use "
                f"--config.replay.warm_up={steps} or less"
            )

    def share(self, learners: int) -> Self:
        """See `ReplayScheme`."""
        share = super().share(learners)
        period = self._divided("steps_per_update", learners)
        return dataclasses.replace(share, steps_per_update=period)

    def signatures(self, signature: "stored_unroll.StoredUnroll") -> dict[str, Any]:
        """See `ReplayScheme`; the queue only counts the unrolls."""
        from laser_tf.replay import stored_unroll

        return super().signatures(signature) | {base.QUEUE: stored_unroll.count_of(signature)}

    def unroll_tables(self, queue: str) -> tuple[str, ...]:
        """See `ReplayScheme`."""
        return (self.replay_table,) if self.replay_table else ()

    def counting_tables(self, queue: str) -> tuple[str, ...]:
        """See `ReplayScheme`."""
        return (queue,)

    def make_batches(self, context: base.LearnerContext) -> "batch_sources.BatchSource":
        """See `ReplayScheme`."""
        from laser_tf.replay import paced_batches

        return paced_batches.make(self, context)


def check_fraction(config: Any, name: str) -> None:
    """Raises ValueError unless a field is from 0 to 1."""
    value = getattr(config, name)
    if not 0 <= value <= 1:
        raise errors.ConfigError(f"{name} is {value}: use a value from 0 to 1")


def check_capacity(config: base.ReplayScheme) -> None:
    """Raises ValueError unless replay can hold a batch, and what the first update waits for."""
    config_checks.check_range(config, "capacity", 1, base.MAX_STORED_STEPS, "no memory holds more")
    if config.capacity < config.min_capacity:
        raise errors.ConfigError(
            f"capacity must be at least batch_size times {config.length_keys}, and at least any "
            f"warm_up: {config.min_capacity} agent steps, got {config.capacity}"
        )


def check_replay_fraction(config: Any) -> None:
    """Raises ValueError unless `replay_fraction` makes whole numbers of unrolls, not all, not 0."""
    fraction, size = config.replay_fraction, config.batch_size
    if not 0 < fraction < 1:
        raise errors.ConfigError(
            f"replay_fraction is {fraction}: use a value between 0 and 1; without online unrolls "
            "V-trace's policy gradient need not converge (LASER, proposition 2); without replayed "
            "ones use another replay.scheme"
        )
    replayed = size * fraction
    if abs(replayed - round(replayed)) > 1e-6 * size or not 0 < round(replayed) < size:
        raise errors.ConfigError(
            f"batch_size {size} times replay_fraction {fraction} is {replayed:g} replayed "
            "unrolls: choose values whose product is a whole number"
        )

"""The base of schemes that sample unrolls or sequences from a Reverb table."""

import dataclasses
from typing import Any, ClassVar

from laser_tf import config_checks, errors
from laser_tf.replay.schemes import base

CORE_STATES = ("stored", "zero")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableReplay(base.ReplayScheme):
    """Unrolls in a first in, first out table, sampled uniformly or by priorities."""

    replay_table: ClassVar[str | None] = "replay"

    capacity: int = 1_000_000  # agent steps; max in replay; steps that sequences share count once
    core_state: str = "stored"  # initial state of replayed entries: stored (by the actor) or zero
    priority_exponent: float = 0.0  # exponent; applied to priorities; 0: uniform replay
    importance_exponent: float = 1.0  # exponent; applied to importance-sampling weights (beta)

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_choice(self, "core_state", CORE_STATES)
        for name in ("priority_exponent", "importance_exponent"):
            config_checks.check_range(self, name, 0, 1, "larger exponents are not supported")
        check_capacity(self)


def check_capacity(config: base.ReplayScheme) -> None:
    """Raises ConfigError unless replay can hold a batch and the warm-up."""
    config_checks.check_range(config, "capacity", 1, base.MAX_STORED_STEPS, "no memory holds more")
    batch = config.batch_size * config.steps_per_entry
    needed, content = max((batch, "a batch"), (config.warm_up, "warm_up"))
    if config.capacity < needed:
        raise errors.ConfigError(
            f"capacity must be at least {needed} agent steps, the size of {content}, got "
            f"{config.capacity}. Increase capacity."
        )


def check_replay_fraction(config: Any) -> None:
    """Raises ConfigError unless batches have replayed and online unrolls, in whole numbers."""
    fraction, size = config.replay_fraction, config.batch_size
    if not 0 < fraction < 1:
        raise errors.ConfigError(
            f"replay_fraction must be between 0 and 1, got {fraction}. Without online unrolls "
            "V-trace's policy gradient need not converge (LASER, proposition 2). For online "
            "unrolls only, use --config.replay.scheme=online"
        )
    replayed = size * fraction
    if abs(replayed - round(replayed)) > 1e-6 * size or not 0 < round(replayed) < size:
        raise errors.ConfigError(
            "batch_size times replay_fraction must be a whole number of unrolls between 0 and "
            f"batch_size, got {size} times {fraction}, which is {replayed:g}. Change one of them."
        )

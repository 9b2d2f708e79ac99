"""Prioritised overlapping sequences with burn-in (R2D2, section 2.3)."""

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

from laser_tf import errors
from laser_tf.replay.schemes import base, replay_only

if TYPE_CHECKING:
    from laser_tf.replay import stored_unroll, writers


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sequences(replay_only.ReplayOnly):
    """Sequences in Reverb, sampled by priorities.

    An actor computes the initial priority of a sequence, the agent's loss computes later ones.
    """

    replay_table: ClassVar[str | None] = "sequences"
    sequence_table: ClassVar[str] = "sequences"  # where actors write sequences
    uses_sequences: ClassVar[bool] = True

    scheme: str = "sequences"
    sequence_length: int = 80  # agent steps; the trained part of a sequence, without burn_in (m)
    sequence_overlap: int = 40  # agent steps; shared by adjacent sequences
    burn_in: int = 40  # agent steps; before the trained part, they only advance the core state (l)
    steps_per_update: int = 3_200  # agent steps; written by actors for each update
    priority_exponent: float = 0.9  # exponent; applied to priorities; 0: uniform replay
    importance_exponent: float = 0.6  # exponent; applied to importance-sampling weights (beta)

    def __post_init__(self):
        super().__post_init__()
        if not 0 <= self.sequence_overlap < self.sequence_length:
            raise errors.ConfigError(
                "sequence_overlap must be at least 0 and less than sequence_length "
                f"({self.sequence_length}), got {self.sequence_overlap}. Use e.g. half of it."
            )
        for name in ("sequence_length", "sequence_overlap", "burn_in"):
            if getattr(self, name) < 0 or getattr(self, name) % self.unroll_length:
                raise errors.ConfigError(
                    f"{name} must be a multiple of unroll_length ({self.unroll_length}), got "
                    f"{getattr(self, name)}. Sequences consist of unrolls: use a multiple, or "
                    "another unroll_length."
                )

    @property
    def steps_per_entry(self) -> int:
        """See `ReplayScheme`."""
        return self.burn_in + self.sequence_length

    @property
    def new_steps_per_item(self) -> int:
        """See `ReplayScheme`."""
        return self.sequence_length - self.sequence_overlap

    def signatures(self, signature: "stored_unroll.StoredUnroll") -> dict[str, Any]:
        """See `ReplayScheme`."""
        from laser_tf.replay import tables

        unrolls = self.steps_per_entry // self.unroll_length
        return super().signatures(signature) | {
            self.sequence_table: tables.stacked(signature, unrolls)
        }

    def make_writers(self, context: base.ActorContext) -> "list[writers.Writer]":
        """See `ReplayScheme`."""
        from laser_tf.replay import sequence_writer

        priority = sequence_writer.initial_priority(context.agent)
        return [sequence_writer.SequenceWriter(self, context, priority)]

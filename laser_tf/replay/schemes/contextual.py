"""Sequences in a contextual priority tree in the learner (Reactor, section 3.3, appendix 6.3)."""

import dataclasses
import pathlib
from typing import TYPE_CHECKING, ClassVar, Self

from laser_tf import config_checks, errors
from laser_tf.replay.schemes import base, sequences

if TYPE_CHECKING:
    from laser_tf.replay import batch_sources, client, stored_unroll, writers

_MAX_SEQUENCES = 10_000_000  # In the tree, which then takes 2 GB.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Contextual(sequences.Sequences):
    """Sequences that the learner stores: priorities of new ones are inferred from neighbours.

    The server has only two queues: of new sequences, and of a header for each new unroll.
    """

    replay_table: ClassVar[str | None] = None
    sequence_table: ClassVar[str] = "new_sequences"  # a queue
    supports_serial: ClassVar[bool] = True

    scheme: str = "contextual"
    sequence_length: int = 40  # agent steps; the trained part of a sequence, without burn_in
    sequence_overlap: int = 20  # agent steps; shared by adjacent sequences
    burn_in: int = 0  # agent steps; before the trained part, they only advance the core state
    steps_per_update: int = 80  # agent steps; written by actors for each update
    priority_exponent: float = 1.0  # exponent; applied to priorities, above 0
    importance_exponent: float = 1.0  # exponent; applied to importance-sampling weights (beta)
    uniform_share: float = 0.0  # fraction; uniform part of the samples (epsilon)

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(self, "uniform_share", 0, 1, "it is a share of the samples")
        if not self.priority_exponent:
            raise errors.ConfigError(
                f"priority_exponent must be above 0, got {self.priority_exponent}. Uniform "
                "sequences need another replay.scheme"
            )
        if self.max_items > _MAX_SEQUENCES:
            raise errors.ConfigError(
                f"capacity must be {_MAX_SEQUENCES * self.new_steps_per_item} agent steps or less, "
                f"got {self.capacity}. The tree orders at most {_MAX_SEQUENCES} sequences"
            )

    @property
    def min_memory_unrolls(self) -> int:
        """See `ReplayScheme`; the server holds two queues, of headers and of sequences."""
        return self.queue_capacity * (1 + self.steps_per_entry // self.unroll_length)

    def per_learner(self, learners: int) -> Self:
        """See `ReplayScheme`."""
        if learners > 1:
            raise errors.ConfigError(
                f"cluster.learners must be 1 for replay.scheme {self.scheme!r}, got {learners}. "
                "One learner stores all sequences"
            )
        return self

    def make_writers(self, context: base.ActorContext) -> "list[writers.Writer]":
        """See `ReplayScheme`."""
        from laser_tf.replay import sequence_writer

        # A queue ignores priorities; the tree in the learner infers them.
        return [sequence_writer.SequenceWriter(self, context, priority=lambda _: 1.0)]

    def make_batches(self, context: base.LearnerContext) -> "batch_sources.BatchSource":
        """See `ReplayScheme`."""
        from laser_tf.replay import contextual_replay

        return contextual_replay.make_batches(self, context)

    def make_learner_client(
        self,
        actors_client: "client.ReplayClient",
        signature: "stored_unroll.StoredUnroll",
        workdir: pathlib.Path,
    ) -> "client.ReplayClient":
        """See `ReplayScheme`."""
        from laser_tf.replay import contextual_replay

        return contextual_replay.ContextualReplay(actors_client, self, signature, workdir)

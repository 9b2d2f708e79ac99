"""Complete episodes with recomputed core states, mixed with online unrolls (LASER, section A.2)."""

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

from laser_tf import errors
from laser_tf.replay.schemes import base, table_replay

if TYPE_CHECKING:
    from laser_tf.replay import batch_sources, stored_unroll, writers


@dataclasses.dataclass(frozen=True, kw_only=True)
class Episodes(base.ReplayScheme):
    """Episodes are sampled uniformly and replayed from their starts with the newest weights."""

    replay_table: ClassVar[str] = "episodes"
    recomputes_states: ClassVar[bool] = True
    # Episodes have priority 1 and their placeholders 0, see `episode_replay`.
    sampler_exponent = 1.0

    scheme: str = "episodes"
    replay_fraction: float = 0.75  # fraction; share of replayed unrolls in a batch, below 1
    capacity: int = 1_000_000  # agent steps; in replay

    def __post_init__(self):
        super().__post_init__()
        table_replay.check_replay_fraction(self)
        table_replay.check_capacity(self)

    def check_episode_length(self, max_steps: int) -> None:
        """See `ReplayScheme`."""
        if not max_steps:
            raise errors.ConfigError(
                "environment.max_frames_per_episode must be above 0 for replay.scheme "
                f"{self.scheme!r}, which stores whole episodes, got 0"
            )
        needed = -(-max_steps // self.unroll_length) * self.unroll_length
        if needed > self.capacity:
            raise errors.ConfigError(
                f"replay.capacity must be {needed} or more, since an episode can have {max_steps} "
                f"agent steps, got {self.capacity}. Raise it, or lower "
                "environment.max_frames_per_episode"
            )

    def stored_signature(self, signature: "stored_unroll.StoredUnroll") -> Any:
        """See `ReplayScheme`; core states are not stored."""
        return signature._replace(core_state=())

    def signatures(self, signature: "stored_unroll.StoredUnroll") -> dict[str, Any]:
        """See `ReplayScheme`; an episode has any number of unrolls."""
        from laser_tf.replay import tables

        episode = tables.stacked(self.stored_signature(signature), None)
        return {base.QUEUE: signature, self.replay_table: episode}

    def unroll_tables(self, queue: str) -> dict[str, bool]:
        """See `ReplayScheme`."""
        return {queue: True}

    def make_writers(self, context: base.ActorContext) -> "list[writers.Writer]":
        """See `ReplayScheme`."""
        from laser_tf.replay import episode_replay

        return [*super().make_writers(context), episode_replay.EpisodeWriter(self, context)]

    def make_batches(self, context: base.LearnerContext) -> "batch_sources.BatchSource":
        """See `ReplayScheme`."""
        from laser_tf.replay import episode_replay

        return episode_replay.make_batches(self, context)

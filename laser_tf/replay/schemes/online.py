"""No replay: each unroll is learned from once (IMPALA, A3C)."""

import dataclasses
from typing import TYPE_CHECKING

from laser_tf.replay.schemes import base

if TYPE_CHECKING:
    from laser_tf.replay import batch_sources


@dataclasses.dataclass(frozen=True, kw_only=True)
class Online(base.ReplayScheme):
    """Batches of new unrolls alone."""

    scheme: str = "online"

    @property
    def online_entries(self) -> int:
        """See `ReplayScheme`."""
        return self.batch_size

    def make_batches(self, context: base.LearnerContext) -> "batch_sources.BatchSource":
        """See `ReplayScheme`."""
        from laser_tf.replay import batch_sources

        return batch_sources.online_batches(context.replay, self.online_entries, self.unroll_length)

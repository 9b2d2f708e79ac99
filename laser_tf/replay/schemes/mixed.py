"""Online and replayed unrolls in each batch (LASER, section 3)."""

import dataclasses
from typing import TYPE_CHECKING

from laser_tf.replay.schemes import base, table_replay

if TYPE_CHECKING:
    from laser_tf.replay import batch_sources


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mixed(table_replay.TableReplay):
    """Batches whose first entries are new and whose other entries are replayed unrolls.

    A batch is complete as soon as replay holds one unroll. A limit that waited for more would block
    the learner, and with it the queue and the actors that fill replay.
    """

    scheme: str = "mixed"
    replay_fraction: float = 0.75  # fraction; of a batch, below 1; the other unrolls are online

    def __post_init__(self):
        super().__post_init__()
        table_replay.check_replay_fraction(self)

    @property
    def online_entries(self) -> int:
        """See `ReplayScheme`."""
        return self.batch_size - round(self.batch_size * self.replay_fraction)

    def make_batches(self, context: base.LearnerContext) -> "batch_sources.BatchSource":
        """See `ReplayScheme`."""
        from laser_tf.replay import batch_sources

        return batch_sources.mixed_batches(context.replay, self)

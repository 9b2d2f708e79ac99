"""No replay: each unroll is learned from once (IMPALA, A3C)."""

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from laser_tf.replay.schemes import base

if TYPE_CHECKING:
    from laser_tf.replay import batch_sources


@dataclasses.dataclass(frozen=True, kw_only=True)
class Online(base.ReplayScheme):
    """Batches of new unrolls alone."""

    supports_serial: ClassVar[bool] = True

    scheme: str = "online"

    def make_batches(self, context: base.LearnerContext) -> "batch_sources.BatchSource":
        """See `ReplayScheme`."""
        from laser_tf.replay import batch_sources, dataset

        queue = context.replay.connection.queue
        online = context.iterate(lambda address: dataset.online_batches(address, self, queue))
        return batch_sources.BatchSource(context, online, [online])

"""No replay: each unroll is learned from once (IMPALA, A3C)."""

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from laser_tf.replay.schemes import base

if TYPE_CHECKING:
    from laser_tf.replay import batch_sources, stored_unroll


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
        batches: Iterator[stored_unroll.Batch] = online
        if context.turn_taking:
            written = context.turn_taking.read(
                context.replay.connection, {queue: online}, self.online_entries
            )
            batches = (batch for (new,) in written for batch in new)
        return batch_sources.BatchSource(context, batches, [online])

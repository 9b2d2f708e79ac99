"""Online and replayed unrolls in each batch (LASER, section 3)."""

import dataclasses
from typing import TYPE_CHECKING

from laser_tf.replay.schemes import base, table_replay

if TYPE_CHECKING:
    import tensorflow as tf

    from laser_tf.replay import batch_sources, stored_unroll


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mixed(table_replay.TableReplay):
    """Batches whose first entries are new and whose other entries are replayed unrolls."""

    scheme: str = "mixed"
    replay_fraction: float = 0.75  # fraction; share of replayed unrolls in a batch, below 1

    def __post_init__(self):
        super().__post_init__()
        table_replay.check_replay_fraction(self)

    def make_batches(self, context: base.LearnerContext) -> "batch_sources.BatchSource":
        """See `ReplayScheme`."""
        from laser_tf.replay import batch_sources

        queue = context.replay.connection.queue
        batches = context.iterate(lambda address: self.mixed_batches(address, queue))
        return batch_sources.BatchSource(context, batches, [batches])

    def mixed_batches(self, server_address: str, queue: str) -> "tf.data.Dataset":
        """Returns endless `stored_unroll.Batch`es: new unrolls, each once, and replayed ones."""
        import tensorflow as tf

        from laser_tf.replay import dataset

        def mix(
            online: "stored_unroll.Batch", replayed: "stored_unroll.Batch"
        ) -> "stored_unroll.Batch":
            mixed = tf.nest.map_structure(
                lambda *parts: tf.concat(parts, axis=0),
                online._replace(new_steps=()),
                replayed._replace(new_steps=()),
            )
            return mixed._replace(new_steps=online.new_steps)

        online = dataset.online_batches(server_address, self, queue)
        replayed = dataset.replayed_batches(server_address, self)
        return dataset.mapped(tf.data.Dataset.zip((online, replayed)), mix)

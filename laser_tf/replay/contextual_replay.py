"""Replay whose sequences lie in the learner's process, in the order of a contextual tree."""

import pathlib

import numpy as np

from laser_tf.replay import (
    client,
    connection,
    memory_estimate,
    memory_left,
    replay_config,
    sequence_checkpoint,
    sequence_store,
    stored_unroll,
)
from laser_tf.workdir import layout


def for_learner(
    replay: client.ReplayClient,
    config: replay_config.ReplayConfig,
    signature: stored_unroll.StoredUnroll,
    workdir: pathlib.Path,
) -> client.ReplayClient:
    """What a learner sees of a replay: itself, or where priorities are contextual a store of it.

    Args:
      replay: where the actors write.
      config: of its tables.
      signature: of an unroll.
      workdir: the run's folder, whose checkpoint fills the store.
    """
    if config.priorities != replay_config.CONTEXTUAL:
        return replay
    memory_estimate.warn_if_too_large(config, signature)
    store = sequence_store.SequenceStore(config, signature, has_room=memory_left.has_room)
    saved = sequence_checkpoint.SequenceCheckpoints(workdir / layout.SEQUENCES_CHECKPOINT)
    saved.restore(store)
    return ContextualReplay(replay, config, store, saved)


class ContextualReplay:
    """A `client.ReplayClient` whose server has only the queue of new sequences.

    Attributes:
      queue: this learner's.
      store: what is drawn from.
    """

    def __init__(
        self,
        source: client.ReplayClient,
        config: replay_config.ReplayConfig,
        store: sequence_store.SequenceStore,
        saved: sequence_checkpoint.SequenceCheckpoints,
    ):
        """Takes what it is made of.

        Args:
          source: where new sequences come from, of one server.
          config: of its tables.
          store: where they go to.
          saved: the store's checkpoints.
        """
        self.queue = source.queue
        self.store = store
        self._source = source
        self._config = config
        self._saved = saved

    @property
    def servers(self) -> tuple[connection.ReplayConnection, ...]:
        """The one that actors write to."""
        return self._source.servers

    def size(self) -> int:
        """Sequences in the store."""
        return len(self.store)

    def fill(self) -> float:
        """Agent steps in the store over its capacity, in [0, 1]."""
        return self.size() * self._config.steps_per_item / self._config.capacity

    def take_priorities(self, batch: stored_unroll.Batch, priorities: np.ndarray) -> None:
        """See `client.ReplayClient`; all entries are drawn from the store."""
        self.store.update(batch.key, priorities)

    def metrics(self) -> dict[str, float]:
        """The store's."""
        return self.store.metrics()

    def checkpoint(self) -> None:
        """Saves the queue, where that is this process's, and then the store.

        What moves from the one to the other meanwhile is in both, and known by its number.
        """
        self._source.checkpoint()
        self._saved.save(self.store.contents())

    def stop(self) -> None:
        """Leaves the server."""
        self._source.stop()

"""Replay whose sequences are stored in the learner's process, in a contextual priority tree."""

import functools
import itertools
import pathlib
from collections.abc import Iterator

import numpy as np

from laser_tf import array_function
from laser_tf.replay import (
    batch_sources,
    client,
    dataset,
    memory,
    sequence_checkpoint,
    sequence_store,
    stored_unroll,
)
from laser_tf.replay.schemes import base, contextual, replay_only
from laser_tf.workdir import run_directory


class ContextualReplay(client.ReplayClient):
    """A replay whose server has only the queue of new sequences.

    Attributes:
      store: The sequences that batches are sampled from.
    """

    def __init__(
        self,
        source: client.ReplayClient,
        scheme: contextual.Contextual,
        signature: stored_unroll.StoredUnroll,
        workdir: pathlib.Path,
    ):
        """Creates the store of the actors' server, filled from the run's checkpoint."""
        super().__init__(source.connection)
        memory.warn_if_too_large(scheme, signature)
        self._source = source
        path = workdir / run_directory.SEQUENCES_CHECKPOINT
        self._saved = sequence_checkpoint.SequenceCheckpoints(path)
        self.store = self._saved.restore(
            lambda: sequence_store.SequenceStore(scheme, signature, has_room=memory.has_room)
        )

    def size(self) -> int:
        """See `client.ReplayClient`."""
        return len(self.store)

    def update_priorities(self, batch: stored_unroll.Batch, priorities: np.ndarray) -> None:
        """See `client.ReplayClient`; all entries are sampled from the store."""
        self.store.update(batch.key, priorities)

    def metrics(self) -> dict[str, float]:
        """See `client.ReplayClient`."""
        return self.store.metrics()

    def checkpoint(self) -> None:
        """See `client.ReplayClient`; saves the queue, if this process runs it, then the store.

        Sequences that move from the queue to the store in the meantime are in both, and known by
        their number.
        """
        self._source.checkpoint()
        self._saved.save(self.store.contents())

    def stop(self) -> None:
        """See `client.ReplayClient`."""
        self._source.stop()


def make_batches(
    scheme: contextual.Contextual, context: base.LearnerContext
) -> batch_sources.BatchSource:
    """Starts filling the store of a `ContextualReplay` and sampling from it.

    A batch is sampled when the learner has taken the batch before the last one, so that its
    priorities are at most two updates old.
    """
    replay = context.replay
    assert isinstance(replay, ContextualReplay)
    counts = scheme.iterate_counts(context)
    new = context.iterate(lambda address: dataset.items(address, scheme.sequence_table))
    # A thread that empties the queue of new sequences, however slow the learner is. A full queue
    # would block the actors, and with them the steps that the learner waits for.
    filling = batch_sources.BackgroundSource(_fill(replay.store, iter(new, None)), [new])
    counter = batch_sources.UnrollCounter()
    limiter = replay_only.UpdateRateLimiter(scheme, replay.size, counter)
    batches = limiter.batches(iter(counts, None), sampled_batches(scheme, replay.store))
    return batch_sources.BatchSource(context, batches, [counts, filling], counter)


def _fill(
    store: sequence_store.SequenceStore, sequences: Iterator[stored_unroll.StoredUnroll]
) -> Iterator[None]:
    """Adds sequences to a store; yields nothing."""
    for sequence in sequences:
        store.add(sequence)
    yield from ()


def sampled_batches(
    scheme: contextual.Contextual, store: sequence_store.SequenceStore
) -> Iterator[stored_unroll.Batch]:
    """Yields batches of arrays from a store that has sequences."""
    to_batch = array_function.ArrayFunction(
        functools.partial(dataset.replayed_batch, scheme=scheme)
    )
    for _ in itertools.count():
        yield to_batch(store.sample(scheme.replayed_entries))

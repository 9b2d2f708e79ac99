"""Replay whose sequences are stored in the learner's process, in a contextual priority tree."""

import functools
import pathlib
import threading
from collections.abc import Callable

import numpy as np

from laser_tf import array_function
from laser_tf.replay import (
    batch_sources,
    client,
    connection,
    dataset,
    memory_estimate,
    memory_left,
    paced_batches,
    sequence_checkpoint,
    sequence_store,
    server_iterator,
    stored_unroll,
)
from laser_tf.replay.schemes import base, contextual
from laser_tf.workdir import layout

_WAIT_SECONDS = 0.1  # Between two looks at an empty store.
_CLOSING_SECONDS = 5.0


def restore(
    replay: client.ReplayClient,
    scheme: contextual.Contextual,
    signature: stored_unroll.StoredUnroll,
    workdir: pathlib.Path,
) -> "ContextualReplay":
    """Creates the learner's store and fills it from the run's checkpoint.

    Args:
      replay: The server that the actors write to.
      scheme: Replay scheme.
      signature: Signature of an unroll.
      workdir: The run directory.
    """
    memory_estimate.warn_if_too_large(scheme, signature)
    store = sequence_store.SequenceStore(scheme, signature, has_room=memory_left.has_room)
    saved = sequence_checkpoint.SequenceCheckpoints(workdir / layout.SEQUENCES_CHECKPOINT)
    saved.restore(store)
    return ContextualReplay(replay, scheme, store, saved)


class ContextualReplay:
    """A `client.ReplayClient` whose server has only the queue of new sequences.

    Attributes:
      queue: this learner's.
      store: what is drawn from.
    """

    def __init__(
        self,
        source: client.ReplayClient,
        scheme: contextual.Contextual,
        store: sequence_store.SequenceStore,
        saved: sequence_checkpoint.SequenceCheckpoints,
    ):
        """Takes what it is made of.

        Args:
          source: where new sequences come from, of one server.
          scheme: Replay scheme.
          store: where they go to.
          saved: the store's checkpoints.
        """
        self.queue = source.queue
        self.store = store
        self._source = source
        self._scheme = scheme
        self._saved = saved

    @property
    def connection(self) -> connection.ReplayConnection:
        """The server that actors write to."""
        return self._source.connection

    def size(self) -> int:
        """Sequences in the store."""
        return len(self.store)

    def fill(self) -> float:
        """Agent steps in the store over its capacity, in [0, 1]."""
        return self._scheme.fill(self.size())

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


class ContextualBatches(paced_batches.PacedBatches):
    """Batches of a store, one for every `steps_per_update` agent steps that actors have written.

    A batch is sampled when the learner has taken the batch before the last one, so that its
    priorities are at most two updates old.
    """

    def __init__(
        self,
        counts: batch_sources.Source,
        new_sequences: server_iterator.ServerIterator,
        store: sequence_store.SequenceStore,
        scheme: contextual.Contextual,
    ):
        """Starts filling the store, and sampling.

        Args:
          counts: A `stored_unroll.Count` for every new unroll.
          new_sequences: Sequences in the order of their arrival.
          store: Where new sequences go.
          scheme: Replay scheme.
        """
        self._filling = _StoreFiller(new_sequences, store)
        super().__init__(counts, _SampledBatches(store, scheme), scheme, lambda: len(store))

    def poll(self, seconds: float) -> stored_unroll.Batch | None:
        """See `batch_sources.BackgroundSource`."""
        self._filling.check()
        return super().poll(seconds)

    def close(self) -> None:
        """Ends sampling and filling: what has not arrived by now stays in the queue."""
        super().close()
        self._filling.close()


def make_batches(scheme: contextual.Contextual, context: base.LearnerContext) -> ContextualBatches:
    """Starts fetching the batches of a learner whose replay is a `ContextualReplay`."""
    replay = context.replay
    assert isinstance(replay, ContextualReplay)
    sequences = server_iterator.ServerIterator(
        replay.connection, lambda address: dataset.items(address, scheme.sequence_table)
    )
    return ContextualBatches(paced_batches.counts(context), sequences, replay.store, scheme)


class _StoreFiller:
    """A thread that empties the queue of new sequences, however slow the learner is.

    A full queue would block the actors, and with them the steps that the learner waits for.
    """

    def __init__(
        self, new_sequences: server_iterator.ServerIterator, store: sequence_store.SequenceStore
    ):
        self._source = new_sequences
        self._store = store
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._fill, name="new sequences", daemon=True)
        self._thread.start()

    def _fill(self) -> None:
        try:
            while (sequence := self._source()) is not None:
                self._store.add(sequence)
        except Exception as error:  # raised in the learner's thread by `check`
            self._error = error

    def check(self) -> None:
        """Raises the error that ended filling, if any; see `ServerIterator.check`, too."""
        if self._error is not None:
            raise self._error
        self._source.check()

    def close(self) -> None:
        self._source.close()
        self._thread.join(_CLOSING_SECONDS)


class _SampledBatches:
    """A `batch_sources.Source` that samples when it is asked."""

    def __init__(self, store: sequence_store.SequenceStore, scheme: contextual.Contextual):
        self._store = store
        self._entries = scheme.replayed_entries
        self._make = array_function.ArrayFunction(
            functools.partial(dataset.replayed_batch, scheme=scheme)
        )
        self._closed = threading.Event()

    def get(self, should_stop: Callable[[], bool]) -> stored_unroll.Batch | None:
        while not should_stop():
            if len(self._store):
                return self._make(self._store.draw(self._entries))
            self._closed.wait(_WAIT_SECONDS)
        return None

    def close(self) -> None:
        self._closed.set()

"""Batches of sequences that a store in this process holds, see `replay.sequence_store`."""

import functools
import threading
from collections.abc import Callable

from laser_tf.replay import connection, dataset, replay_config, sequence_store, stored_unroll
from laser_tf.training import array_function, batches, replay_source

_WAIT_SECONDS = 0.1  # from one look at an empty store to the next
_CLOSING_SECONDS = 5.0


class StoredBatchStream(batches.ReplayBatchStream):
    """Batches of a store, one for every `steps_per_update` that actors have written.

    They are drawn when the learner has taken the batch before the last one: what waits for it is
    at most two updates behind the newest priorities.
    """

    def __init__(
        self,
        counts: batches.Stream,
        server: connection.ReplayConnection,
        store: sequence_store.SequenceStore,
        config: replay_config.ReplayConfig,
    ):
        """Starts to fill the store, and to draw.

        Args:
          counts: a `stored_unroll.Count` for every new unroll.
          server: where new sequences come from.
          store: where they go to.
          config: of the tables.
        """
        self._filling = _Filling(server, store)
        super().__init__(counts, _DrawnBatches(store, config), config, lambda: len(store))

    def poll(self, seconds: float) -> stored_unroll.Batch | None:
        """See `BatchStream`."""
        self._filling.check()
        return super().poll(seconds)

    def close(self) -> None:
        """Ends drawing and filling: what has not come by now stays in the queue."""
        super().close()
        self._filling.close()


class _Filling:
    """A thread that empties the queue of new sequences, however slow the learner is.

    A full queue would hold the actors, and with them the steps that the learner waits for.
    """

    def __init__(self, server: connection.ReplayConnection, store: sequence_store.SequenceStore):
        self._source = replay_source.ReplaySource(server, dataset.new_sequences)
        self._store = store
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._fill, name="new sequences", daemon=True)
        self._thread.start()

    def _fill(self) -> None:
        try:
            while (sequence := self._source()) is not None:
                self._store.add(sequence)
        except Exception as error:  # handed over to the learner's thread by `check`
            self._error = error

    def check(self) -> None:
        """Raises the error that ended filling, if one did; see `ReplaySource.check`, too."""
        if self._error is not None:
            raise self._error
        self._source.check()

    def close(self) -> None:
        self._source.close()
        self._thread.join(_CLOSING_SECONDS)


class _DrawnBatches:
    """A `batches.Stream` that draws at the moment when it is asked."""

    def __init__(self, store: sequence_store.SequenceStore, config: replay_config.ReplayConfig):
        self._store = store
        self._entries = config.replay_entries
        self._make = array_function.ArrayFunction(
            functools.partial(dataset.prioritised_batch, config=config)
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

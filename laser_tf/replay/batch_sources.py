"""Batches for the learner, fetched in the background from a server that may restart."""

import collections
import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from laser_tf.replay import client, connection, dataset, server_iterator
from laser_tf.replay.schemes import table_replay

_POLL_SECONDS = 0.5
_MAX_STREAMS = 100_000  # Whose unrolls are counted; the one that was silent longest is forgotten.


class Source(Protocol):
    """A source of elements for one thread."""

    def get(self, should_stop: Callable[[], bool]) -> Any | None:
        """Returns the next element, arrays; None once `should_stop`, which may raise, is True."""

    def close(self) -> None:
        """Ends fetching."""


class BatchSource(Source, Protocol):
    """A source of a learner's `stored_unroll.Batch`es."""

    @property
    def unconsumed_steps(self) -> int:
        """New agent steps that have left the queue and that no returned batch counts.

        0 where new unrolls themselves are learned from.
        """

    def metrics(self) -> dict[str, float]:
        """Returns metrics for TensorBoard."""


class BackgroundSource:
    """Fetches one element ahead in a thread.

    A thread rather than tf.data's prefetch: waiting for it can be interrupted, so that a failed
    actor or Ctrl-C ends a run whose queue stays empty. The thread is a daemon, since Reverb may
    never wake it from an empty queue.
    """

    def __init__(self, fetch: Callable[[], Any]):
        """Starts fetching; the source also ends when `fetch` returns None."""
        self._elements: queue.Queue[Any] = queue.Queue(maxsize=1)
        self._closed = threading.Event()
        threading.Thread(target=self._fetch, args=(fetch,), name="batches", daemon=True).start()

    def _fetch(self, fetch: Callable[[], Any]) -> None:
        try:
            while not self._closed.is_set() and (element := fetch()) is not None:
                self._put(element)
        except Exception as error:  # raised in the learner's thread by `poll`
            self._put(error)

    def _put(self, element: Any) -> None:
        while not self._closed.is_set():
            try:
                self._elements.put(element, timeout=_POLL_SECONDS)
                return
            except queue.Full:
                continue

    def get(self, should_stop: Callable[[], bool]) -> Any | None:
        """See `Source`."""
        while not should_stop():
            element = self.poll(_POLL_SECONDS)
            if element is not None:
                return element
        return None

    def poll(self, seconds: float) -> Any | None:
        """Returns the next element, or None if none arrives within some seconds."""
        try:
            element = self._elements.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(element, Exception):
            raise element
        return element

    @property
    def unconsumed_steps(self) -> int:
        """See `BatchSource`."""
        return 0

    def metrics(self) -> dict[str, float]:
        """See `BatchSource`."""
        return {}

    def close(self) -> None:
        """See `Source`."""
        self._closed.set()


class ServerSource(BackgroundSource):
    """The elements of a dataset on a server; counts online unrolls that are lost on the way."""

    def __init__(
        self,
        replay: connection.ReplayConnection,
        make: Callable[[str], tf.data.Dataset],
        online_entries: int = 0,
    ):
        """Starts fetching.

        Args:
          replay: Connection to the server.
          make: Returns the dataset for the server's address.
          online_entries: Number of entries of each `stored_unroll.Batch` that are counted.
        """
        self._iterator = server_iterator.ServerIterator(replay, make)
        self._online = online_entries
        self._counter = UnrollCounter()
        super().__init__(self._next)

    def _next(self) -> Any | None:
        element = self._iterator()
        if element is not None and self._online:
            unrolls = element.unrolls
            self._counter.add(unrolls.actor[: self._online], unrolls.number[: self._online])
        return element

    def poll(self, seconds: float) -> Any | None:
        """See `BackgroundSource`."""
        self._iterator.check()
        return super().poll(seconds)

    def metrics(self) -> dict[str, float]:
        """See `BatchSource`."""
        return self._counter.metrics()

    def close(self) -> None:
        """See `Source`."""
        super().close()
        self._iterator.close()


class UnrollCounter:
    """Counts unrolls that were lost between writer and learner, and those that came twice.

    A killed server loses unrolls, and a writer that reconnects may send some again; both are
    harmless to learning. The counts are estimates: each environment numbers its unrolls from 0 on,
    so that the numbers seen so far tell how many unrolls should have arrived.
    """

    def __init__(self):
        """Creates a counter at 0."""
        self.lost = 0
        self.duplicated = 0
        # Stream -> its first and last number and how many unrolls have arrived.
        self._streams: collections.OrderedDict[int, tuple[int, int, int]] = (
            collections.OrderedDict()
        )

    def add(self, streams: np.ndarray, numbers: np.ndarray) -> None:
        """Counts unrolls in the order of their arrival.

        Args:
          streams: int64 [B], see `stored_unroll.StoredUnroll.actor`.
          numbers: int64 [B].
        """
        for stream, number in zip(streams.tolist(), numbers.tolist(), strict=True):
            first, last, count = self._streams.get(stream, (number, number, 0))
            before = last - first + 1 - count if count else 0
            first, last, count = min(first, number), max(last, number), count + 1
            missing = last - first + 1 - count
            self.lost += max(0, missing) - max(0, before)
            self.duplicated += max(0, -missing) - max(0, -before)
            self._streams[stream] = first, last, count
            self._streams.move_to_end(stream)
            if len(self._streams) > _MAX_STREAMS:
                self._streams.popitem(last=False)

    def metrics(self) -> dict[str, float]:
        """Returns the counts since the start of this process."""
        return {
            "replay/lost_unrolls": float(self.lost),
            "replay/duplicated_unrolls": float(self.duplicated),
        }


def online_batches(replay: client.ReplayClient, entries: int, unroll_length: int) -> ServerSource:
    """Starts fetching batches of new unrolls from a learner's queue."""
    queue_ = replay.connection.queue
    return ServerSource(
        replay.connection,
        lambda address: dataset.online_batches(address, queue_, entries, unroll_length),
        entries,
    )


def mixed_batches(replay: client.ReplayClient, scheme: table_replay.TableReplay) -> ServerSource:
    """Starts fetching batches of online and replayed unrolls."""
    queue_ = replay.connection.queue
    return ServerSource(
        replay.connection,
        lambda address: dataset.mixed_batches(address, scheme, queue_),
        scheme.online_entries,
    )


def replayed_batches(replay: client.ReplayClient, scheme: table_replay.TableReplay) -> ServerSource:
    """Starts fetching batches of replayed unrolls or sequences."""
    return ServerSource(
        replay.connection, lambda address: dataset.replayed_batches(address, scheme)
    )

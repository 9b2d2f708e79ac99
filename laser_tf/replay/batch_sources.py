"""Batches for the learner, fetched in the background from a server that may restart or move."""

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import reverb
import tensorflow as tf

from laser_tf import array_function, errors
from laser_tf.replay import connection, stored_unroll
from laser_tf.replay.schemes import base

_POLL_SECONDS = 0.5
_RETRY_SECONDS = 1.0  # between an error and the next attempt
_MAX_ERRORS = 5  # errors in a row while the server answers

# Freeing an iterator with autotuning may block the thread that frees it for a minute.
_UNTUNED = tf.data.Options()
_UNTUNED.autotune.enabled = False


class ServerIterator(Iterator[Any]):
    """Yields the elements of a dataset as arrays until it is closed.

    Reverb's iterator is replaced if it raises, or if the server has been restarted or moved.
    Otherwise it may block forever if the last server's machine has not closed its connections.
    """

    def __init__(self, replay: connection.ReplayConnection, make: Callable[[str], tf.data.Dataset]):
        """Creates an iterator; the first element makes the dataset for the server's address."""
        self._replay = replay
        self._make = make
        self._fetch: array_function.CancellableFunction | None = None
        self._server = replay.server  # server of the current dataset
        self._closed = threading.Event()

    def __next__(self) -> Any:
        """Blocks until the next element arrives; returns None if the dataset has ended.

        Raises ConfigError if a server with other tables has replaced the server, and RuntimeError
        if the server answers, but fails to return elements.
        """
        failures = 0
        while not self._closed.is_set():
            try:
                if self._fetch is None:
                    if not self._replay.wait(self._closed.is_set):
                        break
                    self._server = self._replay.server
                    elements = self._make(self._replay.address).with_options(_UNTUNED)
                    self._fetch = array_function.CancellableFunction(iter(elements).get_next)
                    continue  # Unless `close`, which could not cancel it yet, has been called.
                return self._fetch()
            except errors.UserError:
                raise
            except tf.errors.OutOfRangeError:
                self._fetch = None
                return None
            except (RuntimeError, reverb.ReverbError, tf.errors.OpError) as error:
                self._fetch = None
                if self._closed.is_set():
                    break  # The server may be about to exit.
                failures += self._replay.poll()
                if failures >= _MAX_ERRORS:
                    raise
                logging.debug("Lost the iterator over replay: %s", error)
                self._closed.wait(_RETRY_SECONDS)
        raise StopIteration

    def check(self) -> None:
        """Cancels the call of another thread that is blocked on a server that is gone."""
        self._replay.raise_if_rejected()
        fetch = self._fetch  # Now, because the fetching thread may replace it.
        if fetch is not None and self._server != self._replay.server:
            fetch.cancel()

    def close(self) -> None:
        """Ends the call in progress and all later calls."""
        self._closed.set()
        fetch = self._fetch
        if fetch is not None:
            fetch.cancel()


class BackgroundSource:
    """Prefetches at most two elements in a daemon thread.

    Waiting for a thread can be interrupted, unlike waiting for tf.data's prefetch. A failed actor
    or Ctrl-C therefore ends a run whose queue stays empty. The thread is a daemon, since Reverb may
    never wake it from an empty queue.
    """

    def __init__(
        self, elements: Iterable[Any], underlying: "Sequence[ServerIterator | BackgroundSource]"
    ):
        """Starts fetching; the iterators behind the elements are checked and closed, too."""
        self._underlying = underlying
        self._fetched: queue.Queue[Any] = queue.Queue(maxsize=1)
        self._closed = False
        self._error: Exception | None = None
        threading.Thread(target=self._fetch, args=(elements,), name="batches", daemon=True).start()

    def _fetch(self, elements: Iterable[Any]) -> None:
        try:
            for element in elements:
                self._fetched.put(element)
                if self._closed:
                    return
        except Exception as error:  # `check` raises it in the learner's thread.
            self._error = error

    def check(self) -> None:
        """Raises the error that ended fetching, if any; see `ServerIterator.check`, too."""
        if self._error is not None:
            raise self._error
        for source in self._underlying:
            source.check()

    def poll(self, seconds: float) -> Any | None:
        """Returns the next element, or None if none arrives within some seconds."""
        self.check()
        try:
            return self._fetched.get(timeout=seconds)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Ends fetching."""
        self._closed = True
        with contextlib.suppress(queue.Empty):
            self._fetched.get_nowait()  # The thread may wait for room.
        for source in self._underlying:
            source.close()


class BatchSource(BackgroundSource):
    """The `stored_unroll.Batch`es of a learner, without invalid unrolls."""

    def __init__(
        self,
        context: base.LearnerContext,
        batches: Iterable[stored_unroll.Batch],
        underlying: Sequence[ServerIterator | BackgroundSource],
        counter: "UnrollCounter | None" = None,
    ):
        """Starts fetching batches of arrays; the iterators behind them are closed with this source.

        `counter` counts unrolls that are not in batches themselves.
        """
        self._counter = counter or UnrollCounter()
        self._consumed = 0  # Counted steps that returned batches include.
        self._turn_taking = context.turn_taking
        self._batches = map(context.stage, map(context.check.mask, batches))
        super().__init__(() if self._turn_taking else self._batches, underlying)

    def poll(self, seconds: float) -> stored_unroll.Batch | None:
        """See `BackgroundSource`; in a serial run, computes the next batch in this thread."""
        if not self._turn_taking:
            return super().poll(seconds)
        self.check()
        return next(self._batches, None)

    def get(self, should_stop: Callable[[], bool]) -> stored_unroll.Batch | None:
        """Returns the next batch; None once `should_stop` returns True.

        Raises ConfigError if the replay server was rejected, RuntimeError if it returned an error.
        """
        if self._turn_taking:
            self._turn_taking.should_stop = should_stop
        while not should_stop():
            batch = self.poll(_POLL_SECONDS)
            if batch is None:
                continue
            unrolls, is_online = batch.unrolls, batch.is_online
            self._counter.add(unrolls.stream[is_online], unrolls.number[is_online])
            self._consumed += 0 if is_online.any() else int(batch.new_steps)
            return batch
        return None

    @property
    def unreported_steps(self) -> int:
        """Counted agent steps that are in no returned batch; 0 unless all batches are replayed."""
        return self._counter.steps - self._consumed

    def metrics(self) -> dict[str, float]:
        """Returns metrics for TensorBoard."""
        return self._counter.metrics()


class UnrollCounter:
    """Counts lost and duplicate unrolls between writer and learner.

    A killed server loses unrolls, and a writer that reconnects may send some again; both are
    harmless to learning. The counts are estimates: each environment numbers its unrolls from 0 on,
    so that the smallest and the largest number give how many unrolls should have arrived.
    """

    def __init__(self):
        self.steps = 0  # agent steps of unrolls that are not in batches themselves
        # Stream -> its first and last number and how many unrolls have arrived.
        self._streams: dict[int, tuple[int, int, int]] = {}

    def add(self, streams: np.ndarray, numbers: np.ndarray) -> None:
        """Counts unrolls by their `stream` and `number`, int64 [B]."""
        for stream, number in zip(streams.tolist(), numbers.tolist(), strict=True):
            first, last, count = self._streams.get(stream, (number, number, 0))
            self._streams[stream] = min(first, number), max(last, number), count + 1

    def metrics(self) -> dict[str, float]:
        """Returns the counts since the start of this process."""
        streams = list(self._streams.values())  # At once: another thread adds streams.
        missing = [last - first + 1 - count for first, last, count in streams]
        return {
            "replay/lost_unrolls": float(sum(max(0, number) for number in missing)),
            "replay/duplicated_unrolls": float(sum(max(0, -number) for number in missing)),
        }

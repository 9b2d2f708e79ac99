"""Batches for the learner, fetched in the background from a server that may restart."""

import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from laser_tf.replay import server_iterator, stored_unroll
from laser_tf.replay.schemes import base

_POLL_SECONDS = 0.5


class BackgroundSource:
    """Prefetches at most two elements in a daemon thread.

    A thread rather than tf.data's prefetch: waiting for it can be interrupted, so that a failed
    actor or Ctrl-C ends a run whose queue stays empty. The thread is a daemon, since Reverb may
    never wake it from an empty queue.
    """

    def __init__(
        self,
        elements: Iterable[Any],
        sources: "Sequence[server_iterator.ServerIterator | BackgroundSource]",
    ):
        """Starts fetching elements, which are computed in the thread from `sources`."""
        self._sources = sources
        self._fetched: queue.Queue[Any] = queue.Queue(maxsize=1)
        self._closed = threading.Event()
        self._error: Exception | None = None
        threading.Thread(target=self._fetch, args=(elements,), name="batches", daemon=True).start()

    def _fetch(self, elements: Iterable[Any]) -> None:
        try:
            for element in elements:
                if not self._put(element):
                    return
        except Exception as error:  # `check` raises it in the learner's thread.
            self._error = error

    def _put(self, element: Any) -> bool:
        """Waits for room and adds an element; returns False if the source was closed before."""
        while not self._closed.is_set():
            with contextlib.suppress(queue.Full):
                self._fetched.put(element, timeout=_POLL_SECONDS)
                return True
        return False

    def check(self) -> None:
        """Raises the error that ended fetching, if any; see `ServerIterator.check`, too."""
        if self._error is not None:
            raise self._error
        for source in self._sources:
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
        self._closed.set()
        for source in self._sources:
            source.close()


class BatchSource(BackgroundSource):
    """The `stored_unroll.Batch`es of a learner, without invalid unrolls."""

    def __init__(
        self,
        context: base.LearnerContext,
        batches: Iterable[stored_unroll.Batch],
        sources: "Sequence[server_iterator.ServerIterator | BackgroundSource]",
        counter: "UnrollCounter | None" = None,
    ):
        """Starts fetching.

        Args:
          context: Learner that the batches are made for.
          batches: Batches of arrays, computed in the thread.
          sources: Sources of the batches, which are closed with this source.
          counter: Counter of unrolls that are not in batches themselves.
        """
        self._counter = counter or UnrollCounter()
        self._consumed = 0  # Counted steps that returned batches include.
        super().__init__(map(context.check.mask, batches) if context.check else batches, sources)

    def get(self, should_stop: Callable[[], bool]) -> stored_unroll.Batch | None:
        """Returns the next batch; None once `should_stop` returns True.

        Raises:
          ConfigError: If the replay server was rejected.
          RuntimeError: If the replay server returned an error.
          Exception: The error of `should_stop`.
        """
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

    Attributes:
      steps: Agent steps of unrolls that are not in batches themselves.
    """

    def __init__(self):
        self.steps = 0
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

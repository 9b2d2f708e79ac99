"""The learner's next batch, fetched in the background while the learner computes."""

import queue
import threading
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from laser_tf.runtime import array_function

_POLL_SECONDS = 0.5


class BatchStream:
    """Keeps one batch of a dataset ahead, and never blocks the learner for ever.

    A thread rather than tf.data's prefetch: waiting for it can be interrupted, so that a dead actor
    or Ctrl-C ends a run whose queue stays empty. The thread is a daemon, since Reverb may never
    wake it from an empty queue.
    """

    def __init__(self, dataset: tf.data.Dataset):
        """Starts fetching."""
        self._batches: queue.Queue[Any] = queue.Queue(maxsize=1)
        self._closed = threading.Event()
        threading.Thread(target=self._fetch, args=(dataset,), name="batches", daemon=True).start()

    def _fetch(self, dataset: tf.data.Dataset) -> None:
        try:
            fetch = array_function.ArrayFunction(iter(dataset).get_next)
            while not self._closed.is_set():
                self._put(fetch())
        except Exception as error:  # handed over to the learner's thread by `get`
            self._put(error)

    def _put(self, item: Any) -> None:
        while not self._closed.is_set():
            try:
                self._batches.put(item, timeout=_POLL_SECONDS)
                return
            except queue.Full:
                continue

    def get(self, should_stop: Callable[[], bool]) -> Any | None:
        """Returns the next batch, arrays, or None once `should_stop` (which may raise) says so."""
        while not should_stop():
            try:
                batch = self._batches.get(timeout=_POLL_SECONDS)
            except queue.Empty:
                continue
            if isinstance(batch, Exception):
                raise batch
            return batch
        return None

    def close(self) -> None:
        """Ends fetching."""
        self._closed.set()

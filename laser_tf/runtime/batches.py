"""The learner's next batch, fetched in the background while the learner computes."""

import concurrent.futures
from collections.abc import Callable
from typing import Any

import tensorflow as tf

POLL_SECONDS = 0.5


class BatchStream:
    """An iterator over a dataset that keeps one batch ahead and never blocks for ever."""

    def __init__(self, dataset: tf.data.Dataset):
        self._iterator = iter(dataset)
        # A thread rather than tf.data's prefetch: waiting for its result can be interrupted, so a
        # dead actor or Ctrl-C ends a run whose queue stays empty.
        self._executor = concurrent.futures.ThreadPoolExecutor(1, "batches")
        self._pending = self._executor.submit(next, self._iterator)

    def get(self, should_stop: Callable[[], bool]) -> Any | None:
        """Returns the next batch, or None once `should_stop` (which may raise) says so."""
        while not should_stop():
            try:
                batch = self._pending.result(timeout=POLL_SECONDS)
            except concurrent.futures.TimeoutError:
                continue
            self._pending = self._executor.submit(next, self._iterator)
            return batch
        return None

    def close(self) -> None:
        """Lets go of the pending batch; its thread ends once the replay server is stopped."""
        self._executor.shutdown(wait=False, cancel_futures=True)

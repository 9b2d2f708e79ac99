"""Replayed batches, one for every so many steps that actors write."""

import logging
import time
from collections.abc import Callable

import numpy as np

from laser_tf.replay import batch_sources, dataset, stored_unroll
from laser_tf.replay.schemes import base, table_replay

_MAX_NEW_UNROLLS = 100  # A larger count is forged and would use up the budget of the run.
_FULL_SECONDS = 60.0  # Replay that does not grow for so long, though it is written to, is full.


def make(scheme: table_replay.PacedReplay, context: base.LearnerContext) -> "PacedBatches":
    """Starts fetching batches from the table of a scheme."""
    replayed = batch_sources.replayed_batches(context.replay, scheme)
    return PacedBatches(counts(context), replayed, scheme, context.replay.size)


def counts(context: base.LearnerContext) -> batch_sources.ServerSource:
    """Starts fetching a `stored_unroll.Count` for every new unroll."""
    connection = context.replay.connection
    return batch_sources.ServerSource(
        connection, lambda address: dataset.items(address, connection.queue)
    )


class PacedBatches(batch_sources.BackgroundSource):
    """Replayed batches, one for every `steps_per_update` agent steps that actors have written."""

    def __init__(
        self,
        counts: batch_sources.Source,
        replayed: batch_sources.Source,
        scheme: table_replay.PacedReplay,
        replay_size: Callable[[], int],
    ):
        """Starts fetching `stored_unroll.Batch`es of arrays.

        Args:
          counts: A `stored_unroll.Count` for every new unroll.
          replayed: Batches.
          scheme: Replay scheme.
          replay_size: Returns the number of items in replay, which may fall below the warm-up if a
            server restarts empty.
        """
        self._counts = counts
        self._replayed = replayed
        self._counter = batch_sources.UnrollCounter()
        self._replay_size = replay_size
        self._warm_up_items = scheme.warm_up_items
        self._warm_up = scheme.warm_up
        self._period = scheme.steps_per_update
        self._max_new_steps = _MAX_NEW_UNROLLS * scheme.unroll_length
        self._ahead = 0  # new steps beyond what the updates so far waited for
        self._has_begun = False
        self._counted = 0  # new steps that have arrived, in the thread that fetches
        self._consumed = 0  # those of batches that were returned, in the learner's thread
        super().__init__(self._next)

    def _next(self) -> stored_unroll.Batch | None:
        new, was_cold, monitor = 0, not self._has_begun, _WarmUpMonitor()
        while True:
            if self._ahead + new >= self._period:
                size = self._replay_size()
                if size >= self._warm_up_items:
                    break
                was_cold = True
                if monitor.has_stalled(size, new, self._warm_up):
                    self._lower_warm_up(size)
                    break
            # The queue is emptied during the warm-up, too, or it would stop the actors.
            count = self._counts.get(self._closed.is_set)
            if count is None:
                return None
            self._counter.add(count.actor[None], count.number[None])
            steps = min(max(0, int(count.new_steps)), self._max_new_steps)
            new += steps
            self._counted += steps
        self._ahead += new - self._period
        if was_cold:  # Its steps are counted, but no updates are due for them.
            self._ahead %= self._period
        self._has_begun = True
        batch = self._replayed.get(self._closed.is_set)
        return batch and batch._replace(new_steps=np.int64(new))

    def _lower_warm_up(self, size: int) -> None:
        logging.warning(
            "replay holds %s items and no more, fewer than the %s of replay.warm_up: they are "
            "learned from; raise the replay server's --memory_limit_gb, or lower replay.warm_up",
            f"{size:,}", f"{self._warm_up_items:,}",
        )  # fmt: skip
        self._warm_up_items = max(1, size // 2)  # The server may come to keep fewer still.

    def poll(self, seconds: float) -> stored_unroll.Batch | None:
        """See `BackgroundSource`."""
        batch = super().poll(seconds)
        if batch is not None:
            self._consumed += int(batch.new_steps)
        return batch

    @property
    def unconsumed_steps(self) -> int:
        """See `BatchSource`: many during the warm-up, later those of a few batches."""
        return self._counted - self._consumed

    def metrics(self) -> dict[str, float]:
        """See `BatchSource`."""
        return self._counter.metrics()

    def close(self) -> None:
        """See `Source`."""
        super().close()
        self._counts.close()
        self._replayed.close()


class _WarmUpMonitor:
    """Detects replay that has stopped growing before the warm-up is complete.

    A server whose memory is limited may keep fewer items than the warm-up needs. Without this the
    learner would wait forever while actors continue.
    """

    def __init__(self):
        self._largest, self._new_then, self._then = 0, 0, time.monotonic()

    def has_stalled(self, size: int, new: int, warm_up: int) -> bool:
        """Returns whether replay has stopped growing.

        Args:
          size: Items in replay.
          new: Agent steps that have arrived since the first call.
          warm_up: Agent steps that may arrive without growth.
        """
        now = time.monotonic()
        if size > self._largest:
            self._largest, self._new_then, self._then = size, new, now
        came, passed = new - self._new_then, now - self._then
        return size > 0 and came >= warm_up and passed > _FULL_SECONDS

"""What the learner needs next, fetched in the background while the learner computes."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
import tree

from laser_tf.replay import connection, dataset, replay_config, replayer, stored_unroll
from laser_tf.training import replay_source, unroll_accounting

_POLL_SECONDS = 0.5
_MAX_NEW_UNROLLS = 100  # A larger count is forged and would use up the budget of the run.
_EPISODE_SECONDS = 5.0  # that replay, having episodes, may take to give one
_FULL_SECONDS = 60.0  # that replay does not grow in, though it is written to: it holds no more


class Stream(Protocol):
    """What elements come from."""

    def get(self, should_stop: Callable[[], bool]) -> Any | None:
        """Returns the next one, arrays, or None once `should_stop` (which may raise) says so."""

    def close(self) -> None:
        """Ends fetching."""


class PolledStream(Stream, Protocol):
    """One that also answers at once."""

    def poll(self, seconds: float) -> Any | None:
        """Returns the next element, or None where none comes within some seconds."""


class BatchStream:
    """Keeps one batch ahead, and never blocks the learner for ever.

    A thread rather than tf.data's prefetch: waiting for it can be interrupted, so that a dead actor
    or Ctrl-C ends a run whose queue stays empty. The thread is a daemon, since Reverb may never
    wake it from an empty queue.
    """

    def __init__(self, fetch: Callable[[], Any]):
        """Starts fetching; the stream also ends when `fetch` returns None."""
        self._batches: queue.Queue[Any] = queue.Queue(maxsize=1)
        self._closed = threading.Event()
        threading.Thread(target=self._fetch, args=(fetch,), name="batches", daemon=True).start()

    def _fetch(self, fetch: Callable[[], Any]) -> None:
        try:
            while not self._closed.is_set() and (batch := fetch()) is not None:
                self._put(batch)
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
            batch = self.poll(_POLL_SECONDS)
            if batch is not None:
                return batch
        return None

    def poll(self, seconds: float) -> Any | None:
        """Returns the next batch, or None where none comes within some seconds."""
        try:
            batch = self._batches.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(batch, Exception):
            raise batch
        return batch

    @property
    def untaken_steps(self) -> int:
        """New agent steps that have left the queue for replay alone and that no taken batch counts.

        None where new unrolls themselves are learned from.
        """
        return 0

    def close(self) -> None:
        """Ends fetching."""
        self._closed.set()


class SourceStream(BatchStream):
    """The elements of a dataset on a replay server, arrays; survives the server's restarts."""

    def __init__(
        self,
        replay: connection.ReplayConnection,
        make: Callable[[str], tf.data.Dataset],
        change: Callable[[Any], Any] = lambda element: element,
    ):
        """Starts fetching.

        Args:
          replay: the server.
          make: returns the dataset for the server's address.
          change: what is done to each element, in the background.
        """
        self._source = replay_source.ReplaySource(replay, make)
        self._change = change
        super().__init__(self._next_changed)

    def _next_changed(self) -> Any | None:
        element = self._source()
        return None if element is None else self._change(element)

    def poll(self, seconds: float) -> Any | None:
        """See `BatchStream`."""
        self._source.check()
        return super().poll(seconds)

    def close(self) -> None:
        """See `BatchStream`."""
        super().close()
        self._source.close()


class MixedBatchStream(SourceStream):
    """Online unrolls beside replayed ones, `stored_unroll.Batch`es, online ones first."""

    def __init__(self, replay: connection.ReplayConnection, config: replay_config.ReplayConfig):
        """Starts fetching.

        Args:
          replay: the server.
          config: of its tables.
        """
        self._online = config.online_entries
        self._steps = config.unroll_length
        self.accounting = unroll_accounting.UnrollAccounting()
        super().__init__(
            replay,
            lambda address: dataset.make_dataset(address, config, replay.queue),
            self._account,
        )

    def _account(self, batch: stored_unroll.Batch) -> stored_unroll.Batch:
        unrolls, doubled = account(self.accounting, batch.unrolls, self._online)
        new_steps = np.int64(batch.new_steps - doubled * self._steps)
        return batch._replace(unrolls=unrolls, new_steps=new_steps)


class EpisodeBatchStream(BatchStream):
    """Online unrolls beside unrolls of whole episodes, whose core states are recomputed."""

    def __init__(
        self,
        online: Stream,
        episodes: PolledStream,
        config: replay_config.ReplayConfig,
        unroll_signature: stored_unroll.StoredUnroll,
        next_state: Callable[[stored_unroll.StoredUnroll], Any],
    ):
        """Starts fetching `stored_unroll.Batch`es of arrays, online unrolls first.

        Args:
          online: of the online unrolls of each batch.
          episodes: of whole episodes.
          config: of the tables.
          unroll_signature: with core state.
          next_state: see `replayer.Replayer`.
        """
        self._online = online
        self._episodes = episodes
        self._replayer = replayer.Replayer(config.replay_entries, unroll_signature, next_state)
        self._is_online = np.arange(config.batch_size) < config.online_entries
        self._steps = config.unroll_length
        self.accounting = unroll_accounting.UnrollAccounting()
        self._episode_seen = False
        super().__init__(self._mix)

    def _mix(self) -> stored_unroll.Batch | None:
        online = self._online.get(self._closed.is_set)
        if online is None:
            return None
        online, doubled = account(self.accounting, online, len(online.number))
        new_steps = (len(online.number) - doubled) * self._steps
        replayed = self._replayer.next_batch(self._draw)
        mixed = tree.map_structure(lambda *rows: np.concatenate(rows), online, replayed)
        return stored_unroll.unweighted(mixed, self._is_online, new_steps)

    def _draw(self) -> stored_unroll.StoredUnroll | None:
        # Until an episode ends somewhere, waiting for one would stall the learner, with it the
        # queue, and with it the actors that play it: at the start, and where a server came back
        # empty.
        episode = self._episodes.poll(_EPISODE_SECONDS if self._episode_seen else 0)
        self._episode_seen = episode is not None
        return episode

    def close(self) -> None:
        """Ends fetching."""
        super().close()
        self._online.close()
        self._episodes.close()


class _Growth:
    """Whether replay still grows toward what an update waits for.

    It does not where a server whose memory is limited keeps fewer items than those: without this
    the learner would wait for ever, and nobody would be told, since the actors play on.
    """

    def __init__(self):
        self._largest, self._new_then, self._then = 0, 0, time.monotonic()

    def has_ended(self, size: int, new: int, warm_up: int) -> bool:
        """Takes a look: items in replay, and agent steps that have come since the first one."""
        now = time.monotonic()
        if size > self._largest:
            self._largest, self._new_then, self._then = size, new, now
        came, passed = new - self._new_then, now - self._then
        return size > 0 and came >= warm_up and passed > _FULL_SECONDS


class ReplayBatchStream(BatchStream):
    """Batches from replay alone, one for every `steps_per_update` that actors have written."""

    def __init__(
        self,
        counts: Stream,
        replayed: Stream,
        config: replay_config.ReplayConfig,
        replay_size: Callable[[], int],
    ):
        """Starts fetching `stored_unroll.Batch`es of arrays.

        Args:
          counts: a `stored_unroll.Count` for every new unroll.
          replayed: of batches.
          config: of the tables.
          replay_size: items in replay now; too few again where a server came back empty.
        """
        self._counts = counts
        self._replayed = replayed
        self.accounting = unroll_accounting.UnrollAccounting()
        self._replay_size = replay_size
        self._least = config.warm_up_items
        self._warm_up = config.warm_up
        self._period = config.steps_per_update
        self._max_new_steps = _MAX_NEW_UNROLLS * config.unroll_length
        self._ahead = 0  # new steps beyond what the updates so far waited for
        self._has_begun = False
        self._counted = 0  # new steps that have come, in the thread that fetches
        self._taken = 0  # those of batches that were taken, in the learner's
        super().__init__(self._next)

    def _next(self) -> stored_unroll.Batch | None:
        new, was_cold, growth = 0, not self._has_begun, _Growth()
        while True:
            if self._ahead + new >= self._period:
                size = self._replay_size()
                if size >= self._least:
                    break
                was_cold = True
                if growth.has_ended(size, new, self._warm_up):
                    self._wait_for_fewer(size)
                    break
            # The queue is emptied during the warm-up, too, or it would stop the actors.
            count = self._counts.get(self._closed.is_set)
            if count is None:
                return None
            if not self.accounting.add(count.actor[None], count.number[None])[0]:
                steps = min(max(0, int(count.new_steps)), self._max_new_steps)
                new += steps
                self._counted += steps
        self._ahead += new - self._period
        if was_cold:  # its steps are counted, but no more updates are owed for them
            self._ahead %= self._period
        self._has_begun = True
        batch = self._replayed.get(self._closed.is_set)
        return batch and batch._replace(new_steps=np.int64(new))

    def _wait_for_fewer(self, size: int) -> None:
        logging.warning(
            "replay holds %s items and no more, fewer than the %s of replay.warm_up: they are "
            "learned from; raise the replay server's --memory_limit_gb, or lower replay.warm_up",
            f"{size:,}", f"{self._least:,}",
        )  # fmt: skip
        self._least = max(1, size // 2)  # as its server may come to keep fewer still

    def poll(self, seconds: float) -> stored_unroll.Batch | None:
        """See `BatchStream`."""
        batch = super().poll(seconds)
        if batch is not None:
            self._taken += int(batch.new_steps)
        return batch

    @property
    def untaken_steps(self) -> int:
        """See `BatchStream`: many during the warm-up, later a few batches' at most."""
        return self._counted - self._taken

    def close(self) -> None:
        """Ends fetching."""
        super().close()
        self._counts.close()
        self._replayed.close()


def account(
    accounting: unroll_accounting.UnrollAccounting, unrolls: stored_unroll.StoredUnroll, online: int
) -> tuple[stored_unroll.StoredUnroll, int]:
    """Counts online unrolls, and blanks those that have been learned from before.

    Args:
      accounting: of the queue.
      unrolls: arrays [B, ...].
      online: how many of them are online; they come first.

    Returns:
      The unrolls, where every step of a doubled one opens an episode, so that it has no
      transitions; and the number of those.
    """
    doubled = np.flatnonzero(accounting.add(unrolls.actor[:online], unrolls.number[:online]))
    if doubled.size:
        is_first = unrolls.env_output.is_first.copy()
        is_first[doubled] = True
        unrolls = unrolls._replace(env_output=unrolls.env_output._replace(is_first=is_first))
    return unrolls, doubled.size

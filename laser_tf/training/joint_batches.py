"""Batches from several replay servers: online entries of all, replayed ones by what each holds.

Each server has threads of its own, so that one which is idle, slow or gone holds up nobody. Entries
are fetched in groups, since each call costs Python's time; a group is at most as large as the part
of a batch that one server gives.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from laser_tf.replay import (
    client,
    connection,
    dataset,
    replay_config,
    stored_unroll,
)
from laser_tf.training import batches, replay_source, unroll_accounting

_POLL_SECONDS = 0.1  # while no server holds anything
_PATIENCE_SECONDS = 0.5  # with the server whose turn it is, before another one's is taken


class JointStream(batches.BatchStream):
    """The elements of several servers as they come, in turn where all have some.

    Survives each server's restarts, see `replay_source.ReplaySource`.
    """

    def __init__(
        self,
        servers: Sequence[connection.ReplayConnection],
        make: Callable[[str], tf.data.Dataset],
    ):
        """Starts fetching.

        Args:
          servers: where from.
          make: returns the dataset for a server's address.
        """
        self._sources = [replay_source.ReplaySource(server, make) for server in servers]
        super().__init__(self._sources[0])
        # They wait for the same place in the queue, which Python gives them in turn.
        for source in self._sources[1:]:
            thread = threading.Thread(
                target=self._fetch, args=(source,), name="batches", daemon=True
            )
            thread.start()

    def poll(self, seconds: float) -> Any | None:
        """See `BatchStream`."""
        for source in self._sources:
            source.check()
        return super().poll(seconds)

    def close(self) -> None:
        """See `BatchStream`."""
        super().close()
        for source in self._sources:
            source.close()


class OnlineStream:
    """Batches of online unrolls, each put together from groups of several servers."""

    def __init__(self, replay: client.ReplayClient, config: replay_config.ReplayConfig):
        """Starts fetching from the learner's queue on each server."""
        size = group_size(config.online_entries, len(replay.servers))
        self._groups = JointStream(
            replay.servers,
            lambda address: dataset.unrolls(address, replay.queue, size, in_flight=4),
        )
        self._number = config.online_entries // size

    def get(self, should_stop: Callable[[], bool]) -> stored_unroll.StoredUnroll | None:
        """Returns [online_entries, ...], or None once `should_stop` says so."""
        groups = [self._groups.get(should_stop) for _ in range(self._number)]
        return None if should_stop() or None in groups else _concatenate(groups)

    def close(self) -> None:
        """Ends fetching."""
        self._groups.close()


class SharedStream:
    """Elements drawn from several servers in proportion to what each of them holds."""

    def __init__(self, streams: Sequence[batches.PolledStream], held: Callable[[], Sequence[int]]):
        """Takes its elements from streams, which it closes.

        Args:
          streams: one for each server.
          held: what each server holds now; nothing is drawn where that is 0.
        """
        self._streams = streams
        self._held = held
        self._due = np.zeros(len(streams))  # elements that each server has yet to give
        self.server = 0  # that the last element came from

    def get(self, should_stop: Callable[[], bool]) -> Any | None:
        """Returns the next element, or None once `should_stop` says so."""
        while not should_stop():
            element = self.poll(_PATIENCE_SECONDS)
            if element is not None:
                return element
        return None

    def poll(self, seconds: float) -> Any | None:
        """Returns the next element, or None where no server has one.

        Args:
          seconds: to wait for the server whose turn it is; the others are not waited for.
        """
        held = np.array(self._held(), float)
        if not held.any():
            time.sleep(min(seconds, _POLL_SECONDS))
            return None
        # Not drawn by lot: each server gives exactly its share in the long run.
        due = np.where(held > 0, self._due + held / held.sum(), 0.0)
        for index in np.argsort(-due):
            element = self._streams[index].poll(seconds) if held[index] else None
            if element is not None:
                due[index] -= 1
                self._due, self.server = due, int(index)
                return element
            seconds = 0.0
        return None

    def close(self) -> None:
        """Ends fetching."""
        for stream in self._streams:
            stream.close()


def shared_stream(
    replay: client.ReplayClient, make: Callable[[str], tf.data.Dataset]
) -> SharedStream:
    """Starts fetching from the replay table of each server.

    Args:
      replay: the servers, which survive their restarts.
      make: returns the dataset for a server's address.
    """
    return SharedStream(
        [batches.SourceStream(server, make) for server in replay.servers],
        lambda: [server.num_sampleable for server in replay.servers],
    )


class ReplayedStream:
    """Batches of replayed entries, each put together from groups of several servers."""

    def __init__(self, replay: client.ReplayClient, config: replay_config.ReplayConfig):
        """Starts fetching from the replay table of each server."""
        size = group_size(config.replay_entries, 2 * len(replay.servers))
        self._groups = shared_stream(
            replay, lambda address: dataset.replayed_entries(address, config, size)
        )
        self._size = size
        self._number = config.replay_entries // size

    def get(self, should_stop: Callable[[], bool]) -> stored_unroll.Batch | None:
        """Returns [replay_entries, ...], or None once `should_stop` says so."""
        groups = []
        while len(groups) < self._number:
            group = self._groups.get(should_stop)
            if group is None:
                return None
            server = np.full(self._size, self._groups.server, np.int32)
            groups.append(group._replace(server=server, new_steps=()))
        batch = _concatenate(groups)
        # What is drawn from a server by its share of all items and then there with probability P
        # has N P of all servers equal to N P of that one: the weights need no correction.
        weights = batch.importance_weight
        return batch._replace(importance_weight=weights / weights.max(), new_steps=np.int64(0))

    def close(self) -> None:
        """Ends fetching."""
        self._groups.close()


class JointBatchStream(batches.BatchStream):
    """Online and replayed entries side by side, as many as configured."""

    def __init__(self, replay: client.ReplayClient, config: replay_config.ReplayConfig):
        """Starts fetching `stored_unroll.Batch`es of arrays, online unrolls first.

        Args:
          replay: the servers.
          config: of their tables, with `core_state` "stored" or "zero".
        """
        self._config = config
        self._online = OnlineStream(replay, config)
        self._replayed = ReplayedStream(replay, config) if config.replay_entries else None
        # An actor writes to one server: what comes of it from there is all that it wrote.
        self.accounting = unroll_accounting.UnrollAccounting()
        super().__init__(self._next)

    def _next(self) -> stored_unroll.Batch | None:
        unrolls = self._online.get(self._closed.is_set)
        if unrolls is None:
            return None
        size = self._config.online_entries
        unrolls, doubled = batches.account(self.accounting, unrolls, size)
        is_online = np.ones(size, bool)
        new_steps = (size - doubled) * self._config.unroll_length
        online = stored_unroll.unweighted(unrolls, is_online, new_steps)
        online = online._replace(server=np.zeros(size, np.int32))
        if not self._replayed:
            return online
        replayed = self._replayed.get(self._closed.is_set)
        if replayed is None:
            return None
        parts = (online._replace(new_steps=()), replayed._replace(new_steps=()))
        return _concatenate(parts)._replace(new_steps=online.new_steps)

    def close(self) -> None:
        """Ends fetching."""
        super().close()
        self._online.close()
        if self._replayed:
            self._replayed.close()


def group_size(entries: int, groups: int) -> int:
    """Entries of each of so many groups or more, all equal, that make up a batch."""
    most = max(1, entries // groups)
    return max(size for size in range(1, most + 1) if entries % size == 0)


def _concatenate(parts: Sequence[Any]) -> Any:
    return tree.map_structure(lambda *rows: np.concatenate(rows), *parts)

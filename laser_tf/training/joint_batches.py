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
import tree

from laser_tf.replay import dataset, replay_config, several_servers, stored_unroll
from laser_tf.training import batches

_POLL_SECONDS = 0.1  # while no server holds anything
_PATIENCE_SECONDS = 0.5  # with the server whose turn it is, before another one's is taken


class JointStream(batches.BatchStream):
    """The elements of several servers as they come, in turn where all have some."""

    def __init__(self, fetches: Sequence[Callable[[], Any]]):
        """Starts fetching.

        Args:
          fetches: one for each server; each returns its next element.
        """
        super().__init__(fetches[0])
        # They wait for the same place in the queue, which Python gives them in turn.
        for fetch in fetches[1:]:
            threading.Thread(target=self._fetch, args=(fetch,), name="batches", daemon=True).start()


class OnlineStream:
    """Batches of online unrolls, each put together from groups of several servers."""

    def __init__(self, replay: several_servers.ReplayServers, config: replay_config.ReplayConfig):
        """Starts fetching from the learner's queue on each server."""
        size = group_size(config.online_entries, len(replay.addresses))
        self._groups = JointStream(
            [
                batches.fetcher(dataset.unrolls(address, replay.queue, size, in_flight=4))
                for address in replay.addresses
            ]
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

    def __init__(self, fetches: Sequence[Callable[[], Any]], held: Callable[[], Sequence[int]]):
        """Starts fetching.

        Args:
          fetches: one for each server; each returns its next element.
          held: what each server holds now; nothing is drawn where that is 0.
        """
        self._streams = [batches.BatchStream(fetch) for fetch in fetches]
        self._held = held
        self._due = np.zeros(len(fetches))  # elements that each server has yet to give
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


class ReplayedStream:
    """Batches of replayed entries, each put together from groups of several servers."""

    def __init__(self, replay: several_servers.ReplayServers, config: replay_config.ReplayConfig):
        """Starts fetching from the replay table of each server."""
        size = group_size(config.replay_entries, 2 * len(replay.addresses))
        self._groups = SharedStream(
            [
                batches.fetcher(dataset.replayed_entries(address, config, size))
                for address in replay.addresses
            ],
            replay.items,
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

    def __init__(self, replay: several_servers.ReplayServers, config: replay_config.ReplayConfig):
        """Starts fetching `stored_unroll.Batch`es of arrays, online unrolls first.

        Args:
          replay: the servers.
          config: of their tables, with `core_state` "stored" or "zero".
        """
        self._config = config
        self._online = OnlineStream(replay, config)
        self._replayed = ReplayedStream(replay, config) if config.replay_entries else None
        super().__init__(self._next)

    def _next(self) -> stored_unroll.Batch | None:
        unrolls = self._online.get(self._closed.is_set)
        if unrolls is None:
            return None
        is_online = np.ones(self._config.online_entries, bool)
        new_steps = self._config.fresh_steps_per_update
        online = stored_unroll.unweighted(unrolls, is_online, new_steps)
        if not self._replayed:
            return online
        replayed = self._replayed.get(self._closed.is_set)
        if replayed is None:
            return None
        parts = (
            online._replace(new_steps=(), server=np.zeros(len(is_online), np.int32)),
            replayed._replace(new_steps=()),
        )
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

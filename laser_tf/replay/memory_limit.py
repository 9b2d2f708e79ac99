"""A limit on the memory of a replay server's process.

Reverb has no limit in bytes, and a table's `max_size` cannot change while it serves: what an item
takes, compressed, shows only when it is there. When the process has grown beyond its limit, the
items that fit are counted, and from then on the oldest ones above that number are deleted.

Reverb lists no items, but its checkpoints do, oldest first. They also have what the deletion needs
where no checkpoint is new enough: saving one blocks all writers, so that memory does not grow
meanwhile. Reverb frees what was deleted one by one with later inserts and samples; until then the
process is as large as before.
"""

import ctypes
import logging
import math
import os
import pathlib
import time

from laser_tf.replay import saved_tables, server, table_info

_FILLED_TO = 0.95  # of what the limit leaves to replay, when items are removed
_DRAIN_SECONDS = 0.2  # spent at once on samples that only free memory
GIGABYTE = 10**9


class MemoryLimit:
    """Holds the process of a server to its limit, whenever `enforce` is called."""

    def __init__(self, replay: server.EmbeddedReplay, table: str, limit_bytes: int, base: int):
        """Enforces nothing yet.

        Args:
          replay: the server, in this process.
          table: its replay table.
          limit_bytes: of the process's resident memory.
          base: bytes that the process takes without any replay.
        """
        self._replay = replay
        self._table = table
        self._limit = limit_bytes
        self._base = base
        self._most: int | None = None  # items that fit; None: all so far
        self._told = math.inf  # the smallest number of items that was logged
        self._unfreed = 0  # deleted items that may still take memory
        self._keys: list[int] | None = None
        self._malloc_trim = ctypes.CDLL(None).malloc_trim
        self.note_checkpoint()
        self._inserts_seen = self._inserts_then

    @property
    def bytes(self) -> int:
        """The limit."""
        return self._limit

    def note_checkpoint(self) -> None:
        """Says that the newest checkpoint lists what is in replay now."""
        info = self._info()
        self._inserts_then, self._size_then = _inserts(info), info.current_size
        self._keys = None

    def enforce(self) -> None:
        """Deletes the oldest items while the process is larger than its limit."""
        info, used = self._info(), resident_bytes()
        inserts = _inserts(info)
        self._unfreed = max(0, self._unfreed - max(0, inserts - self._inserts_seen))
        self._inserts_seen = inserts
        if used > self._limit and not self._unfreed:
            self._lower(info.current_size, used)
        if self._most is not None and info.current_size > self._most:
            self._remove(info.current_size - self._most)
        if self._unfreed:
            self._drain()
            self._malloc_trim(0)  # else the pages stay with this process

    def _lower(self, size: int, used: int) -> None:
        room = max(0.0, _FILLED_TO * (self._limit - self._base))
        most = int(size * min(1.0, room / max(1, used - self._base)))
        # Never more again: what came since the last look needs room, too.
        self._most = most if self._most is None else min(most, self._most)
        if self._most >= 0.8 * self._told:
            return
        self._told = self._most
        logging.warning(
            "the process takes %.2f GB, more than its limit of %.2f GB: replay keeps the newest "
            "%s items of %s from now on; lower replay.capacity, or raise --memory_limit_gb",
            used / GIGABYTE, self._limit / GIGABYTE, f"{self._most:,}", f"{size:,}",
        )  # fmt: skip

    def _remove(self, surplus: int) -> None:
        keys = self._oldest(surplus)
        if len(keys) < surplus:
            try:
                self._replay.checkpoint()
            except RuntimeError as error:
                logging.warning(
                    "replay is emptied, since its memory has to be freed and its oldest items are "
                    "not known: it cannot be saved (%s)", error,
                )  # fmt: skip
                self._replay.client.reset(self._table)
                # No checkpoint lists what comes from now on, and inserts are counted from 0 again.
                self.note_checkpoint()
                self._keys = []
                self._unfreed = 0
                self._malloc_trim(0)
                return
            self.note_checkpoint()
            keys = self._oldest(surplus)
        self._replay.client.mutate_priorities(self._table, deletes=keys)
        self._unfreed += len(keys)

    def _oldest(self, number: int) -> list[int]:
        """Keys of the oldest items, as many as are known."""
        if self._keys is None:
            checkpoint = self._replay.newest_checkpoint()
            try:
                self._keys = saved_tables.keys(checkpoint, self._table) if checkpoint else []
            except Exception:  # A damaged checkpoint lists nothing; another one is written.
                self._keys = []
        info = self._info()
        # Whatever has gone since then was the oldest, too.
        gone = self._size_then + _inserts(info) - self._inserts_then - info.current_size
        return self._keys[gone : gone + number]

    def _drain(self) -> None:
        """Has Reverb free what was deleted: each sample takes one item along."""
        if not self._info().current_size:
            return
        samples = self._replay.client.sample(self._table, self._unfreed, emit_timesteps=False)
        deadline = time.monotonic() + _DRAIN_SECONDS
        for _ in samples:
            self._unfreed -= 1
            if time.monotonic() > deadline:
                break

    def _info(self) -> table_info.TableInfo:
        return table_info.read(self._replay.client)[self._table]


def _inserts(info: table_info.TableInfo) -> int:
    return info.rate_limiter_info.insert_stats.completed


def resident_bytes() -> int:
    """Memory that this process takes."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")

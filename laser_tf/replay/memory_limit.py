"""A limit on the memory of a replay server's process, and of the machine that it is on.

Reverb has no limit in bytes, and a table's `max_size` cannot change while it serves: what an item
takes, compressed, shows only when it is there. When the process has grown beyond its limit, or the
machine has hardly any memory left, the items that fit are counted, and from then on the oldest ones
above that number are deleted.

Reverb lists no items, but its checkpoints do, oldest first. Where the newest checkpoint is too old,
another one is written for the list and deleted. Saving blocks all writers, so that memory does not
grow in the meantime. Reverb frees what was deleted one by one with later inserts and samples; until
then the process is as large as before.
"""

import ctypes
import logging
import math
import os
import pathlib
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from laser_tf import errors
from laser_tf.replay import memory_left, table_checkpoint, table_info
from laser_tf.replay.schemes import base as schemes_base

if TYPE_CHECKING:
    from laser_tf.replay import server

_FILLED_TO = 0.95  # of what the limit leaves to replay, when items are removed
_PERIOD_SECONDS = 1.0
_DRAIN_SECONDS = 0.2  # spent at once on samples that only free memory
GIGABYTE = 10**9


class MemoryLimit:
    """Holds the process of a server to its limit, whenever `enforce` is called."""

    def __init__(
        self,
        replay: "server.ReplayServer",
        table: str,
        limit_bytes: int | None,
        base: int,
        *,
        min_items: int = 1,
        has_room: Callable[[], bool] = memory_left.has_room,
        listing: Callable[[], AbstractContextManager] = nullcontext,
    ):
        """Enforces nothing yet.

        Args:
          replay: the server, in this process.
          table: its replay table.
          limit_bytes: Limit of the process's resident memory; None without one.
          base: bytes that the process takes without any replay.
          min_items: Number of items that stay however little memory the machine has left.
          has_room: Returns whether the machine has memory left.
          listing: Entered while a checkpoint is written to list the items.
        """
        self._replay = replay
        self._table = table
        self._limit = limit_bytes
        self._base = base
        self._min_items = min_items
        self._has_room = has_room
        self._listing = listing
        self._most: int | None = None  # items that fit; None: all so far
        self._told = math.inf  # the smallest number of items that was logged
        self._is_error_logged = False
        self._unfreed = 0  # deleted items that may still take memory
        self._keys: list[int] | None = None
        self._malloc_trim = ctypes.CDLL(None).malloc_trim
        self._note_checkpoint()
        self._inserts_seen = self._inserts_then

    @property
    def bytes(self) -> int | None:
        """The limit of the process; None without one."""
        return self._limit

    def _note_checkpoint(self, keys: list[int] | None = None) -> None:
        """Takes what is in replay now for the contents of the newest checkpoint, or for `keys`."""
        info = self._info()
        self._checkpoint = self._replay.newest_checkpoint()
        self._inserts_then, self._size_then = _inserts(info), info.current_size
        self._keys = keys

    def enforce(self) -> None:
        """Deletes the oldest items while the process or the machine is beyond its limit."""
        if self._replay.newest_checkpoint() != self._checkpoint:
            self._note_checkpoint()
        info, used = self._info(), resident_bytes()
        inserts = _inserts(info)
        self._unfreed = max(0, self._unfreed - max(0, inserts - self._inserts_seen))
        self._inserts_seen = inserts
        if not self._unfreed:
            if self._limit is not None and used > self._limit:
                self._fit_process(info.current_size, used, self._limit)
            elif not self._has_room():
                self._fit_machine(info.current_size)
        if self._most is not None and info.current_size > self._most:
            self._remove(info.current_size - self._most)
        if self._unfreed:
            self._drain()
            self._malloc_trim(0)  # else the pages stay with this process

    def try_to_enforce(self) -> None:
        """Calls `enforce`; logs the first error, since the next call may succeed."""
        try:
            self.enforce()
        except Exception as error:  # Reverb raises almost any error.
            if not self._is_error_logged:
                self._is_error_logged = True
                reason = errors.one_line(error, 200)
                logging.warning("Cannot limit the memory of replay: %s", reason)

    def _fit_process(self, size: int, used: int, limit: int) -> None:
        room = max(0.0, _FILLED_TO * (limit - self._base))
        if self._lower(int(size * min(1.0, room / max(1, used - self._base)))):
            logging.warning(
                "the process takes %.2f GB, more than its limit of %.2f GB: replay keeps the "
                "newest %s items of %s from now on; lower replay.capacity, or raise "
                "--memory_limit_gb",
                used / GIGABYTE, limit / GIGABYTE, f"{self._most:,}", f"{size:,}",
            )  # fmt: skip

    def _fit_machine(self, size: int) -> None:
        if size > self._min_items and self._lower(max(self._min_items, int(_FILLED_TO * size))):
            logging.warning(
                "this machine has hardly any memory left: replay keeps the newest %s items of %s "
                "from now on; lower replay.capacity", f"{self._most:,}", f"{size:,}",
            )  # fmt: skip

    def _lower(self, most: int) -> bool:
        """Keeps no more items than `most` from now on; returns whether to log that."""
        # Never more again: what came since the last look needs room, too.
        self._most = most if self._most is None else min(most, self._most)
        if self._most >= 0.8 * self._told:
            return False
        self._told = self._most
        return True

    def _remove(self, surplus: int) -> None:
        keys = self._oldest(surplus)
        if len(keys) < surplus:
            try:
                with self._listing():
                    listed = self._replay.list_keys(self._table)
            except RuntimeError as error:
                logging.warning(
                    "replay is emptied, since its memory has to be freed and its oldest items are "
                    "not known: it cannot be saved (%s)", error,
                )  # fmt: skip
                self._replay.client.reset(self._table)
                # No checkpoint lists what comes from now on, and inserts are counted from 0 again.
                self._note_checkpoint([])
                self._unfreed = 0
                self._malloc_trim(0)
                return
            self._note_checkpoint(listed)
            keys = self._oldest(surplus)
        self._replay.client.mutate_priorities(self._table, deletes=keys)
        self._unfreed += len(keys)

    def _oldest(self, number: int) -> list[int]:
        """Keys of the oldest items, as many as are known."""
        if self._keys is None:
            checkpoint = self._replay.newest_checkpoint()
            try:
                self._keys = table_checkpoint.keys(checkpoint, self._table) if checkpoint else []
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
        return self._replay.tables()[self._table]


def _inserts(info: table_info.TableInfo) -> int:
    return info.rate_limiter_info.insert_stats.completed


def for_machine(
    replay: "server.ReplayServer",
    scheme: schemes_base.ReplayScheme,
    limit_bytes: int | None = None,
    base: int = 0,
    listing: Callable[[], AbstractContextManager] = nullcontext,
) -> MemoryLimit | None:
    """Returns the limit of a server; None if the server stores no replay.

    Args:
      replay: Server in this process.
      scheme: Replay scheme.
      limit_bytes: See `MemoryLimit`.
      base: See `MemoryLimit`.
      listing: See `MemoryLimit`.
    """
    table = scheme.replay_table
    if table is None:
        return None
    return MemoryLimit(
        replay, table, limit_bytes, base, min_items=scheme.min_items, listing=listing
    )


def keep_enforcing(limit: MemoryLimit, stopped: threading.Event) -> None:
    """Enforces a limit every second until the event is set."""
    while not stopped.wait(_PERIOD_SECONDS):
        limit.try_to_enforce()


def resident_bytes() -> int:
    """Memory that this process takes."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")

"""Limit on the memory of a replay server's process, and of its machine.

Reverb has no limit in bytes, and the `max_size` of a table is fixed. The compressed size of an item
is known only once the item is stored. When the process exceeds its limit, or the machine has hardly
any memory left, `MemoryLimit` computes the number of items that fit. It then deletes older items.

Only Reverb's checkpoints list items, oldest first. A checkpoint is therefore written for the list
and deleted, about once in the time that replay takes to fill. Reverb frees deleted items one by one
with later inserts and samples; until then the process is as large as before.
"""

import ctypes
import logging
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from laser_tf import errors
from laser_tf.replay import memory, table_info

if TYPE_CHECKING:
    from laser_tf.replay import server

_TARGET_SHARE = 0.95  # of the available memory, that replay takes after items were removed
_DRAIN_SECONDS = 0.2  # spent at once on samples that only free memory


class MemoryLimit:
    """Removes the oldest items of a replay table if memory is short."""

    def __init__(
        self,
        replay: "server.ReplayServer",
        table: str,
        limit_bytes: int | None,
        base_bytes: int,
        *,
        min_items: int = 1,
        has_room: Callable[[], bool] = memory.has_room,
    ):
        self._replay = replay
        self._table = table
        self._limit_bytes = limit_bytes  # of the process's resident memory; None for no limit
        self._base_bytes = base_bytes  # memory of the process without any replay
        self._min_items = min_items  # that stay even if the machine has no memory left
        self._has_room = has_room  # returns whether the machine has memory left
        self._max_items = self._logged_items = math.inf
        self._is_error_logged = False
        self._unfreed = 0  # deleted items that may still take memory
        self._keys: list[int] = []  # of all items when they were listed, oldest first
        self._removed_before = 0  # items that were removed before the listing
        self._malloc_trim = ctypes.CDLL(None).malloc_trim

    def try_to_enforce(self) -> None:
        """Calls `enforce`; logs the first error, because the next call may succeed."""
        try:
            self.enforce()
        except Exception as error:  # Reverb raises almost any error.
            if not self._is_error_logged:
                self._is_error_logged = True
                reason = errors.one_line(error, 200)
                logging.warning("Cannot limit the memory of replay: %s", reason)

    def enforce(self) -> None:
        """Deletes the oldest items if the process or the machine is beyond its limit."""
        size = self._info().current_size
        if not self._unfreed:
            self._update_max_items(size)
        if size > self._max_items:
            self._remove(size - int(self._max_items))
        if self._unfreed:
            self._drain()
            self._malloc_trim(0)  # Otherwise the pages stay with this process.

    def _update_max_items(self, size: int) -> None:
        """Lowers the number of items if memory is short; it never rises again."""
        used = memory.resident_bytes()
        if self._limit_bytes is not None and used > self._limit_bytes:
            available = max(0.0, _TARGET_SHARE * (self._limit_bytes - self._base_bytes))
            fitting = int(size * min(1.0, available / max(1, used - self._base_bytes)))
            limit, remedy = self._limit_bytes / memory.GIGABYTE, ", or raise --memory_limit_gb"
            reason = f"the process takes {used / memory.GIGABYTE:.2f} GB, its limit is {limit:.2f}"
        elif size > self._min_items and not self._has_room():
            fitting = max(self._min_items, int(_TARGET_SHARE * size))
            reason, remedy = "this machine has hardly any memory left", ""
        else:
            return
        self._max_items = min(fitting, self._max_items)
        if self._max_items < 0.8 * self._logged_items:
            self._logged_items = self._max_items
            logging.warning(
                "Replay keeps the newest %s items of %s from now on, because %s. Lower "
                "replay.capacity%s", f"{self._max_items:,}", f"{size:,}", reason, remedy,
            )  # fmt: skip

    def _remove(self, surplus: int) -> None:
        keys = self._oldest(surplus)
        if len(keys) < surplus:
            try:
                self._keys = self._replay.list_keys(self._table)
            except RuntimeError as error:
                logging.warning(
                    "Emptied replay to free memory, because the oldest items are unknown without "
                    "a checkpoint, and it cannot be saved: %s", error,
                )  # fmt: skip
                self._replay.client.reset(self._table)
                self._unfreed, self._keys = 0, []
                self._malloc_trim(0)
                return
            self._removed_before = self._num_removed()
            keys = self._oldest(surplus)
        self._replay.client.mutate_priorities(self._table, deletes=keys)
        self._unfreed += len(keys)

    def _oldest(self, number: int) -> list[int]:
        """Returns the keys of the oldest items; fewer if not enough keys are known."""
        if not self._keys:
            return []
        # Items that were removed since the listing were the oldest.
        removed = self._num_removed() - self._removed_before
        return self._keys[removed : removed + number]

    def _drain(self) -> None:
        """Makes Reverb free deleted items: each sample frees one."""
        if not self._info().current_size:
            return
        samples = self._replay.client.sample(self._table, self._unfreed, emit_timesteps=False)
        deadline = time.monotonic() + _DRAIN_SECONDS
        for _ in samples:
            self._unfreed -= 1
            if time.monotonic() > deadline:
                break

    def _num_removed(self) -> int:
        info = self._info()
        return table_info.num_inserts(info) - info.current_size

    def _info(self) -> table_info.TableInfo:
        return self._replay.tables()[self._table]

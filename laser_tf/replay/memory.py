"""Memory that replay takes, and limits on it.

Reverb has no limit in bytes, and the `max_size` of a table is fixed. The compressed size of an item
is known only once the item is stored.
"""

import ctypes
import logging
import math
import pathlib
import threading
import time
from typing import TYPE_CHECKING

import psutil
import tensorflow as tf

from laser_tf import errors
from laser_tf.replay import stored_unroll, tables
from laser_tf.replay.schemes import base

if TYPE_CHECKING:
    from laser_tf.replay import server

GIGABYTE = 10**9
CGROUP = pathlib.Path("/sys/fs/cgroup")  # control group (version 2) of this container
ENFORCEMENT_PERIOD_SECONDS = 0.5
_MIN_FREE_SHARE = 0.05  # fraction of all memory, left to other uses
_TARGET_SHARE = 0.95  # fraction of the available memory for replay after a removal
_DRAIN_SECONDS = 0.2  # spent at once on samples that only free memory
# Of a chunk and its references, for each leaf of an unroll; measured 900 to 1,500.
_REVERB_LEAF_BYTES = 1_500


def resident_bytes() -> int:
    """Returns the memory that this process takes."""
    return psutil.Process().memory_info().rss


def has_room() -> bool:
    """Returns whether more memory is free than the share that replay leaves to others."""
    return all(free >= _MIN_FREE_SHARE * total for free, total in _free_and_total())


def _free_and_total() -> list[tuple[int, int]]:
    """Returns free and total bytes of the machine and, if it has a limit, of the container."""
    virtual = psutil.virtual_memory()
    machine = virtual.available, virtual.total
    try:
        limit, used = (int((CGROUP / f"memory.{n}").read_text()) for n in ("max", "current"))
        statistics = (CGROUP / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):  # "max" is no number.
        return [machine]
    parts = dict(line.split() for line in statistics)
    # The kernel frees the cache of files for others, but not shared memory, which it includes.
    cached = int(parts.get("file", 0)) - int(parts.get("shmem", 0))
    return [machine, (limit - used + cached, limit)]


def unroll_bytes(signature: stored_unroll.StoredUnroll) -> int:
    """Returns the bytes of an unroll without compression."""
    return sum(spec.shape.num_elements() * spec.dtype.size for spec in tf.nest.flatten(signature))


def reverb_unroll_bytes(signature: stored_unroll.StoredUnroll) -> int:
    """Returns the bytes of an unroll in Reverb without compression, with Reverb's own data."""
    return unroll_bytes(signature) + _REVERB_LEAF_BYTES * len(tf.nest.flatten(signature))


def warn_if_too_large(
    scheme: base.ReplayScheme, stored_bytes: int, limit_bytes: int | None = None
) -> None:
    """Logs a warning if a full replay may need more memory than is left.

    Every scheme stores each unroll once: sequences share the unrolls of their overlap and burn-in.

    Args:
      scheme: Replay scheme with the capacity.
      stored_bytes: Bytes of a stored unroll without compression.
      limit_bytes: Limit on the memory of this process; None for no limit.
    """
    if not scheme.capacity:
        return
    per_step = stored_bytes / scheme.unroll_length
    left, total = min(_free_and_total())
    free = left - _MIN_FREE_SHARE * total
    if limit_bytes is not None and limit_bytes - resident_bytes() < free:
        free, total = limit_bytes - resident_bytes(), limit_bytes
    free = max(0.0, free)
    if scheme.capacity * per_step > free:
        logging.warning(
            "replay.capacity=%d needs up to %.2f GB (%.0f bytes per agent step before "
            "compression). Replay may take %.2f GB of the %.2f GB of memory here. Use "
            "replay.capacity=%d, or replay removes its oldest experience early if memory runs out",
            scheme.capacity, scheme.capacity * per_step / GIGABYTE, per_step, free / GIGABYTE,
            total / GIGABYTE, max(free / per_step, scheme.unroll_length),
            extra={"is_announced": True},  # The driver of a cluster's processes shows it, too.
        )  # fmt: skip


class MemoryLimit:
    """Removes the oldest items of a replay table if memory is short.

    Only Reverb's checkpoints list items, oldest first. A checkpoint is therefore written for the
    list and deleted, about once in the time that replay takes to fill. Reverb frees deleted items
    one by one with later inserts and samples; until then the process is as large as before.
    """

    def __init__(
        self,
        replay: "server.ReplayServer",
        table: str,
        limit_bytes: int | None,
        base_bytes: int,
        min_items: int = 1,
    ):
        self._replay = replay
        self._table = table
        self._limit_bytes = limit_bytes  # limit of the resident memory; None for no limit
        self._base_bytes = base_bytes  # memory of the process without any replay
        self._min_items = min_items  # never removed, even if memory is full
        self._max_items = self._logged_items = math.inf
        self._unfreed = 0  # deleted items that may still take memory
        self._keys: list[int] = []  # keys of all items at the listing, oldest first
        self._removed_before = 0  # items that were removed before the listing
        self._malloc_trim = ctypes.CDLL(None).malloc_trim

    def keep_enforcing(self, stopped: threading.Event) -> None:
        """Calls `enforce` until it is stopped; logs the first error, since the next may succeed."""
        is_error_logged = False
        while not stopped.wait(ENFORCEMENT_PERIOD_SECONDS):
            try:
                self.enforce()
            except Exception as error:  # Reverb raises almost any error.
                if not is_error_logged:
                    reason = errors.one_line(error, 200)
                    logging.warning("Cannot limit the memory of replay: %s", reason)
                is_error_logged = True

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
        used = resident_bytes()
        if self._limit_bytes is not None and used > self._limit_bytes:
            available = max(0.0, _TARGET_SHARE * (self._limit_bytes - self._base_bytes))
            fitting = int(size * min(1.0, available / max(1, used - self._base_bytes)))
            limit, remedy = self._limit_bytes / GIGABYTE, ", or raise --memory_limit_gb"
            reason = f"the process takes {used / GIGABYTE:.2f} GB, its limit is {limit:.2f}"
        elif size > self._min_items and not has_room():
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
        return tables.num_inserts(info) - info.current_size

    def _info(self) -> tables.TableInfo:
        return self._replay.tables()[self._table]

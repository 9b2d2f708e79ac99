"""Memory that replay takes, and that the machine or the container has left."""

import logging
import pathlib

import psutil
import tensorflow as tf

from laser_tf.replay import stored_unroll
from laser_tf.replay.schemes import base

GIGABYTE = 10**9
MEMINFO = pathlib.Path("/proc/meminfo")
CGROUP = pathlib.Path("/sys/fs/cgroup")  # of this process's container, version 2
_MIN_FREE_SHARE = 0.05  # of all memory, left to the rest of the run and to other processes


def resident_bytes() -> int:
    """Returns the memory that this process takes."""
    return psutil.Process().memory_info().rss


def has_room() -> bool:
    """Returns whether more memory is free than the share that replay leaves to others."""
    return all(free >= _MIN_FREE_SHARE * total for free, total in _free_and_total())


def _free_and_total() -> list[tuple[int, int]]:
    """Returns free and total bytes of the machine and, if it has a limit, of the container."""
    kibibytes = dict(line.split(":") for line in MEMINFO.read_text().splitlines())
    free, total = (int(kibibytes[name].split()[0]) for name in ("MemAvailable", "MemTotal"))
    machine = 1024 * free, 1024 * total
    try:
        limit, used = (int((CGROUP / f"memory.{n}").read_text()) for n in ("max", "current"))
        statistics = (CGROUP / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):  # "max" is no number.
        return [machine]
    cached = int(dict(line.split() for line in statistics).get("file", 0))
    return [machine, (limit - used + cached, limit)]


def unroll_bytes(signature: stored_unroll.StoredUnroll) -> int:
    """Returns the bytes of an unroll without compression."""
    return sum(spec.shape.num_elements() * spec.dtype.size for spec in tf.nest.flatten(signature))


def min_server_bytes(scheme: base.ReplayScheme, signature: stored_unroll.StoredUnroll) -> int:
    """Returns the bytes of a full queue and one batch from replay, without compression."""
    return unroll_bytes(signature) * scheme.min_server_unrolls


def warn_if_too_large(scheme: base.ReplayScheme, signature: stored_unroll.StoredUnroll) -> None:
    """Logs a warning if a full replay may need more memory than is left.

    Every scheme stores each unroll once: sequences share the unrolls of their overlap and burn-in.
    """
    if not scheme.capacity:
        return
    per_step = unroll_bytes(scheme.stored_signature(signature)) / scheme.unroll_length
    left, total = min(_free_and_total())
    free = max(0.0, left - _MIN_FREE_SHARE * total)
    if scheme.capacity * per_step > free:
        logging.warning(
            "replay.capacity=%d needs up to %.2f GB (%.0f bytes per agent step before "
            "compression). Replay may take %.2f GB of the %.2f GB of memory here. Use "
            "replay.capacity=%d, or replay removes its oldest experience early if memory runs out",
            scheme.capacity, scheme.capacity * per_step / GIGABYTE, per_step, free / GIGABYTE,
            total / GIGABYTE, free / per_step,
        )  # fmt: skip

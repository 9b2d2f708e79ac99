"""Estimates the memory of a full replay from the signature of an unroll."""

import logging
import math

import tensorflow as tf

from laser_tf.replay import memory_left, stored_unroll
from laser_tf.replay.schemes import base

_GIGABYTE = 10**9


def unroll_bytes(signature: stored_unroll.StoredUnroll) -> int:
    """Returns the bytes of an unroll without compression."""
    return sum(spec.shape.num_elements() * spec.dtype.size for spec in tf.nest.flatten(signature))


def bytes_per_step(scheme: base.ReplayScheme, signature: stored_unroll.StoredUnroll) -> float:
    """Returns the bytes of an agent step in replay without compression.

    Every scheme stores each unroll once: sequences share the unrolls of their overlap and burn-in.
    """
    if not scheme.capacity:
        return 0.0
    return unroll_bytes(scheme.stored_signature(signature)) / scheme.unroll_length


def warn_if_too_large(scheme: base.ReplayScheme, signature: stored_unroll.StoredUnroll) -> None:
    """Logs a warning if a full replay may need more memory than is left."""
    per_step = bytes_per_step(scheme, signature)
    free, whole = memory_left.free_bytes()
    if scheme.capacity * per_step <= free:
        return
    fitting = _round_down(free / per_step)
    is_usable = fitting >= scheme.min_capacity
    remedy = f"replay.capacity={fitting}" if is_usable else "smaller observations or more memory"
    logging.warning(
        "replay.capacity=%d needs up to %.2f GB (%.0f bytes per agent step before compression). "
        "Replay may take %.2f GB of the %.2f GB of memory here. Use %s, or replay removes its "
        "oldest experience early if memory runs out",
        scheme.capacity, scheme.capacity * per_step / _GIGABYTE, per_step, free / _GIGABYTE,
        whole / _GIGABYTE, remedy,
    )  # fmt: skip


def _round_down(number: float) -> int:
    """Returns a number with its first two digits and zeros."""
    unit = 10 ** max(0, math.floor(math.log10(max(1, number))) - 1)
    return int(number // unit) * unit

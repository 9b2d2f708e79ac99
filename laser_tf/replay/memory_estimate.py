"""Estimates the memory of a full replay from the signature of an unroll."""

import logging
import math

import tensorflow as tf

from laser_tf.replay import memory_left, replay_config, stored_unroll

_GIGABYTE = 10**9


def unroll_bytes(signature: stored_unroll.StoredUnroll) -> int:
    """Returns the bytes of an unroll without compression."""
    return sum(spec.shape.num_elements() * spec.dtype.size for spec in tf.nest.flatten(signature))


def bytes_per_step(
    config: replay_config.ReplayConfig, signature: stored_unroll.StoredUnroll
) -> float:
    """Returns the bytes of an agent step in replay without compression.

    Every scheme stores each unroll once: sequences share the unrolls of their overlap and burn-in,
    and episodes consist of unrolls without core states.
    """
    if config.replay_table is None:
        return 0.0
    if config.replay_table == replay_config.EPISODES:
        signature = signature._replace(core_state=())
    return unroll_bytes(signature) / config.unroll_length


def warn_if_too_large(
    config: replay_config.ReplayConfig, signature: stored_unroll.StoredUnroll
) -> None:
    """Logs a warning if a full replay may need more memory than is left."""
    per_step = bytes_per_step(config, signature)
    free, whole = memory_left.free_bytes()
    if config.capacity * per_step <= free:
        return
    fitting = _round_down(free / per_step)
    is_usable = fitting >= config.least_capacity
    remedy = f"replay.capacity={fitting}" if is_usable else "smaller observations or more memory"
    logging.warning(
        "replay.capacity=%d needs up to %.2f GB (%.0f bytes per agent step before compression). "
        "Replay may take %.2f GB of the %.2f GB of memory here. Use %s, or replay removes its "
        "oldest experience early if memory runs out",
        config.capacity, config.capacity * per_step / _GIGABYTE, per_step, free / _GIGABYTE,
        whole / _GIGABYTE, remedy,
    )  # fmt: skip


def _round_down(number: float) -> int:
    """Returns a number with its first two digits and zeros."""
    unit = 10 ** max(0, math.floor(math.log10(max(1, number))) - 1)
    return int(number // unit) * unit

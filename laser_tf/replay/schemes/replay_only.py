"""Batches of replayed unrolls alone (ACER with continuous actions)."""

import dataclasses
import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from laser_tf import config_checks, errors
from laser_tf.replay.schemes import base, table_replay

if TYPE_CHECKING:
    from laser_tf.replay import batch_sources, stored_unroll

# Cap on the new steps of one item of the queue, in unrolls. Actors stay far below it; without the
# cap, a damaged item could spend the budget of the run.
_MAX_NEW_UNROLLS = 100
_EMPTY_SECONDS = 5.0  # of an empty replay, after which new unrolls are taken again


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplayOnly(table_replay.TableReplay):
    """Unrolls from replay, an update for every `steps_per_update` new agent steps."""

    divided_keys: ClassVar[tuple[str, ...]] = ("batch_size", "steps_per_update")
    replay_fraction = 1.0

    scheme: str = "replay_only"
    steps_per_update: int = 80  # agent steps; written by actors for each update
    warm_up: int = 0  # agent steps; in replay before the first update

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(self, "steps_per_update", 1)
        config_checks.check_range(self, "warm_up", 0)

    @property
    def warm_up_items(self) -> int:
        """Number of items in replay before the first update."""
        return max(1, self.warm_up // self.new_steps_per_item)

    def check_server(self, server_items: int) -> None:
        """See `ReplayScheme`; the warm-up must fit."""
        if self.replay_table and server_items < self.warm_up_items:
            steps = server_items * self.new_steps_per_item
            raise errors.ConfigError(
                f"replay at {self.address} holds {steps} agent steps, less than warm_up, "
                f"{self.warm_up}: start the server with a larger replay.capacity, or use "
                f"--config.replay.warm_up={steps} or less"
            )

    def signatures(self, signature: "stored_unroll.StoredUnroll") -> dict[str, Any]:
        """See `ReplayScheme`; the queue only counts the unrolls."""
        from laser_tf.replay import stored_unroll

        return super().signatures(signature) | {base.QUEUE: stored_unroll.header_of(signature)}

    def unroll_tables(self, queue: str) -> dict[str, bool]:
        """See `ReplayScheme`."""
        return super().unroll_tables(queue) | {queue: False}

    def make_batches(self, context: base.LearnerContext) -> "batch_sources.BatchSource":
        """See `ReplayScheme`."""
        from laser_tf.replay import batch_sources, dataset

        replayed = context.iterate(
            lambda address: dataset.replayed_batches(address, self, _EMPTY_SECONDS)
        )
        counts, counter = self.iterate_counts(context), batch_sources.UnrollCounter()
        limiter = UpdateRateLimiter(self, context.replay.size, counter)
        batches = limiter.batches(counts, replayed)
        return batch_sources.BatchSource(context, batches, [counts, replayed], counter)

    def iterate_counts(self, context: base.LearnerContext) -> "batch_sources.ServerIterator":
        """Returns an iterator over the `stored_unroll.UnrollHeader` of every new unroll."""
        from laser_tf.replay import dataset

        return context.iterate(
            lambda address: dataset.items(address, context.replay.connection.queue)
        )


class UpdateRateLimiter:
    """Yields a batch for every `steps_per_update` agent steps that actors have written.

    No updates are due for the steps of the warm-up, but they are counted.
    """

    def __init__(
        self,
        scheme: ReplayOnly,
        replay_size: Callable[[], int],
        counter: "batch_sources.UnrollCounter",
        growth_timeout_seconds: float = 60.0,
    ):
        self._scheme = scheme
        self._replay_size = replay_size  # May fall below the warm-up if a server restarts empty.
        self._counter = counter
        self._growth_timeout_seconds = growth_timeout_seconds  # after which replay counts as full
        self._warm_up_items = scheme.warm_up_items
        self._largest_size = 0  # Since the last batch.
        self._grown_at = time.monotonic()  # Time at which replay reached the largest size.
        self._grown_steps = 0  # Value of `new_steps` in `batches` at that time.

    def batches(
        self,
        counts: "Iterator[stored_unroll.UnrollHeader]",
        replayed: "Iterator[stored_unroll.Batch | None]",
    ) -> "Iterator[stored_unroll.Batch]":
        """Yields replayed batches; takes counts during the warm-up, too: a full queue blocks.

        None in `replayed` stands for an empty replay, after a restart of its server. Batches end
        with the counts.
        """
        steps_per_update, is_warming_up = self._scheme.steps_per_update, True
        max_steps = _MAX_NEW_UNROLLS * self._scheme.unroll_length
        new_steps = 0  # Since the last batch.
        backlog = 0  # New steps not yet spent on updates.
        for count in counts:
            self._counter.add(count.stream[None], count.number[None])
            steps = min(max(0, int(count.new_steps)), max_steps)
            self._counter.steps += steps
            new_steps += steps
            backlog += steps
            while backlog >= steps_per_update:
                batch = next(replayed, None) if self._is_warm(new_steps) else None
                if batch is None:
                    is_warming_up = True
                    break
                backlog -= steps_per_update
                if is_warming_up:
                    backlog %= steps_per_update
                yield batch._replace(new_steps=np.int64(new_steps))
                is_warming_up, new_steps, self._largest_size = False, 0, 0

    def _is_warm(self, new_steps: int) -> bool:
        """Returns whether replay is warm, or has stopped growing because memory is limited."""
        size, now = self._replay_size(), time.monotonic()
        if size >= self._warm_up_items:
            return True
        if size > self._largest_size:
            self._largest_size, self._grown_at, self._grown_steps = size, now, new_steps
        if (
            not size
            or new_steps - self._grown_steps < self._scheme.warm_up
            or now - self._grown_at <= self._growth_timeout_seconds
        ):
            return False
        logging.warning(
            "Replay stopped growing at %s items, fewer than the %s of replay.warm_up: updates "
            "start now. Raise the replay server's --memory_limit_gb, or lower replay.warm_up",
            f"{size:,}", f"{self._warm_up_items:,}",
        )  # fmt: skip
        self._warm_up_items = max(1, size // 2)  # The server may later keep even fewer items.
        return True

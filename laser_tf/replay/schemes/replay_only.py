"""Batches of replayed unrolls alone (ACER with continuous actions)."""

import dataclasses
import itertools
import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from laser_tf import config_checks, errors
from laser_tf.replay.schemes import base, table_replay

if TYPE_CHECKING:
    from laser_tf.replay import batch_sources, server_iterator, stored_unroll

_MAX_NEW_UNROLLS = 100  # A larger count is forged and would use up the budget of the run.


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplayOnly(table_replay.TableReplay):
    """Unrolls from replay, an update for every `steps_per_update` new agent steps."""

    replay_fraction = 1.0

    scheme: str = "replay_only"
    steps_per_update: int = 80  # agent steps; that actors write for each update
    warm_up: int = 0  # agent steps; in replay before the first update

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(self, "steps_per_update", 1)
        config_checks.check_range(self, "warm_up", 0)

    @property
    def min_capacity(self) -> int:
        """See `ReplayScheme`; includes the warm-up."""
        return max(super().min_capacity, self.warm_up)

    @property
    def warm_up_items(self) -> int:
        """Number of items in replay before the first update."""
        return max(1, self.warm_up // self.steps_per_item)

    def check_server(self, max_items: int) -> None:
        """See `ReplayScheme`; the warm-up must fit."""
        if self.replay_table and max_items < self.warm_up_items:
            steps = max_items * self.steps_per_item
            raise errors.ConfigError(
                f"replay at {self.address} holds {steps} agent steps, less than warm_up, "
                f"{self.warm_up}: start the server with a larger replay.capacity, or use "
                f"--config.replay.warm_up={steps} or less"
            )

    def share(self, learners: int) -> Self:
        """See `ReplayScheme`."""
        return self._divided(learners, "batch_size", "steps_per_update")

    def signatures(self, signature: "stored_unroll.StoredUnroll") -> dict[str, Any]:
        """See `ReplayScheme`; the queue only counts the unrolls."""
        from laser_tf.replay import stored_unroll

        return super().signatures(signature) | {base.QUEUE: stored_unroll.count_of(signature)}

    def unroll_tables(self, queue: str) -> tuple[str, ...]:
        """See `ReplayScheme`."""
        return (self.replay_table,) if self.replay_table else ()

    def counting_tables(self, queue: str) -> tuple[str, ...]:
        """See `ReplayScheme`."""
        return (queue,)

    def make_batches(self, context: base.LearnerContext) -> "batch_sources.BatchSource":
        """See `ReplayScheme`."""
        from laser_tf.replay import batch_sources, dataset

        replayed = context.iterate(lambda address: dataset.replayed_batches(address, self))
        counts, counter = self.iterate_counts(context), batch_sources.UnrollCounter()
        pace = UpdatePace(self, context.replay.size, counter)
        batches = pace.batches(iter(counts, None), iter(replayed, None))
        return batch_sources.BatchSource(context, batches, [counts, replayed], counter)

    def iterate_counts(self, context: base.LearnerContext) -> "server_iterator.ServerIterator":
        """Returns an iterator over the `stored_unroll.Count` of every new unroll."""
        from laser_tf.replay import dataset

        return context.iterate(
            lambda address: dataset.items(address, context.replay.connection.queue)
        )


class UpdatePace:
    """Yields a batch for every `steps_per_update` agent steps that actors have written.

    No updates are due for the steps of the warm-up, but they are counted.
    """

    def __init__(
        self,
        scheme: ReplayOnly,
        replay_size: Callable[[], int],
        counter: "batch_sources.UnrollCounter",
        full_seconds: float = 60.0,
    ):
        """Stores the arguments.

        Args:
          scheme: Replay scheme.
          replay_size: Returns the number of items in replay, which may fall below the warm-up if a
            server restarts empty.
          counter: Counts the steps.
          full_seconds: Replay that does not grow for so long, though it is written to, is full.
        """
        self._scheme = scheme
        self._replay_size = replay_size
        self._counter = counter
        self._full_seconds = full_seconds
        self._warm_up_items = scheme.warm_up_items
        self._largest_size = 0

    def batches(
        self,
        counts: "Iterator[stored_unroll.Count]",
        replayed: "Iterator[stored_unroll.Batch]",
    ) -> "Iterator[stored_unroll.Batch]":
        """Yields replayed batches.

        Args:
          counts: A count for every new unroll. They are taken during the warm-up, too, or a full
            queue would stop the actors.
          replayed: Batches.
        """
        period, is_cold = self._scheme.steps_per_update, True
        max_steps = _MAX_NEW_UNROLLS * self._scheme.unroll_length
        new = ahead = 0  # steps since the last batch, and beyond what the batches waited for
        for count in counts:
            self._counter.add(count.actor[None], count.number[None])
            steps = min(max(0, int(count.new_steps)), max_steps)
            self._counter.steps += steps
            new += steps
            ahead += steps
            while ahead >= period:
                if not self._is_warm(new):
                    is_cold = True
                    break
                ahead -= period
                if is_cold:
                    ahead %= period
                for batch in itertools.islice(replayed, 1):
                    yield batch._replace(new_steps=np.int64(new))
                is_cold, new, self._largest_size = False, 0, 0

    def _is_warm(self, new_steps: int) -> bool:
        """Returns whether replay is warmed up; a replay that has stopped growing is.

        A server whose memory is limited may keep fewer items than the warm-up needs.
        """
        size, now = self._replay_size(), time.monotonic()
        if size >= self._warm_up_items:
            return True
        if size > self._largest_size:
            self._largest_size, self._grown_at, self._grown_steps = size, now, new_steps
        if (
            not size
            or new_steps - self._grown_steps < self._scheme.warm_up
            or now - self._grown_at <= self._full_seconds
        ):
            return False
        logging.warning(
            "Replay stopped growing at %s items, fewer than the %s of replay.warm_up: updates "
            "start now. Raise the replay server's --memory_limit_gb, or lower replay.warm_up",
            f"{size:,}", f"{self._warm_up_items:,}",
        )  # fmt: skip
        self._warm_up_items = max(1, size // 2)  # The server may come to keep fewer still.
        return True

"""Batches of online unrolls and batches of replayed unrolls in turn (ACER, algorithm 1)."""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from laser_tf import config_checks, errors
from laser_tf.replay.schemes import base, table_replay

if TYPE_CHECKING:
    from laser_tf.replay import batch_sources, stored_unroll

_MAX_REPLAY_RATIO = 1_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Alternating(table_replay.TableReplay):
    """After each online batch, a Poisson-distributed number of replayed batches of equal size.

    An unroll is in replay before it is in the queue. So replay already holds the unrolls of the
    previous online batch when a replayed batch is sampled.
    """

    scheme: str = "alternating"
    replay_ratio: float = 4.0  # learner updates; mean number of replayed per online updates

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(
            self, "replay_ratio", 0, _MAX_REPLAY_RATIO, "actors would wait for the learner"
        )
        if not self.replay_ratio:
            raise errors.ConfigError(
                f"replay_ratio must be above 0, got {self.replay_ratio}. Without replayed batches "
                "use another replay.scheme"
            )

    @property
    def online_entries(self) -> int:
        """See `ReplayScheme`; all entries of an online batch."""
        return self.batch_size

    @property
    def replayed_entries(self) -> int:
        """See `ReplayScheme`; all entries of a replayed batch."""
        return self.batch_size

    def make_batches(self, context: base.LearnerContext) -> "batch_sources.BatchSource":
        """See `ReplayScheme`."""
        from laser_tf.replay import batch_sources, dataset

        queue = context.replay.connection.queue
        online = context.iterate(lambda address: dataset.online_batches(address, self, queue))
        replayed = context.iterate(lambda address: dataset.replayed_batches(address, self))
        batches = alternate(online, replayed, self.replay_ratio, context.seed)
        return batch_sources.BatchSource(context, batches, [online, replayed])


def alternate(
    online: "Iterator[stored_unroll.Batch]",
    replayed: "Iterator[stored_unroll.Batch]",
    replay_ratio: float,
    seed: Sequence[int],
) -> "Iterator[stored_unroll.Batch]":
    """Yields each online batch, then on average `replay_ratio` replayed batches.

    All learners that update together need the same seed, since they must get batches of one kind.
    """
    random = np.random.default_rng(seed)
    for batch in online:
        yield batch
        yield from itertools.islice(replayed, int(random.poisson(replay_ratio)))

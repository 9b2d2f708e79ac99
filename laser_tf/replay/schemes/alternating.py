"""Batches of online unrolls and batches of replayed unrolls in turn (ACER, algorithm 1)."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from laser_tf import config_checks, errors
from laser_tf.replay.schemes import base, table_replay

if TYPE_CHECKING:
    from laser_tf.replay import batch_sources, stored_unroll

_MAX_REPLAYED = 1_000  # Updates between two online ones.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Alternating(table_replay.TableReplay):
    """After each online batch, a Poisson-distributed number of replayed batches of equal size."""

    scheme: str = "alternating"
    replay_ratio: float = 4.0  # learner updates; on replay after each online one, mean

    def __post_init__(self):
        super().__post_init__()
        config_checks.check_range(
            self, "replay_ratio", 0, _MAX_REPLAYED, "actors would stand still"
        )
        if not self.replay_ratio:
            raise errors.ConfigError(
                f"replay_ratio must be above 0, got {self.replay_ratio}. Without replayed batches "
                "use another replay.scheme"
            )

    @property
    def online_entries(self) -> int:
        """See `ReplayScheme`; of an online batch."""
        return self.batch_size

    @property
    def replayed_entries(self) -> int:
        """See `ReplayScheme`; of a replayed batch."""
        return self.batch_size

    def make_batches(self, context: base.LearnerContext) -> "batch_sources.BatchSource":
        """See `ReplayScheme`."""
        from laser_tf.replay import batch_sources

        online = batch_sources.online_batches(
            context.replay, self.online_entries, self.unroll_length
        )
        replayed = batch_sources.replayed_batches(context.replay, self)
        return AlternatingBatches(online, replayed, self.replay_ratio, context.seed)


class AlternatingBatches:
    """A `batch_sources.BatchSource` of the batches of two sources in turn.

    An unroll is in replay before it is in the queue. So replay holds at least the unrolls of the
    online batch that a replayed batch follows.
    """

    def __init__(
        self,
        online: "batch_sources.BatchSource",
        replayed: "batch_sources.Source",
        replay_ratio: float,
        seed: Sequence[int],
    ):
        """Creates a source that closes the others.

        Args:
          online: Batches of online entries.
          replayed: Batches of replayed entries.
          replay_ratio: Mean number of replayed batches after an online batch.
          seed: Seed of these numbers, equal for all learners that update together: they must get
            batches of the same kind.
        """
        self._online = online
        self._replayed = replayed
        self._ratio = replay_ratio
        self._random = np.random.default_rng(seed)
        self._due = 0  # replayed batches before the next online one

    def get(self, should_stop: Callable[[], bool]) -> "stored_unroll.Batch | None":
        """See `batch_sources.BatchSource`."""
        if self._due:
            batch = self._replayed.get(should_stop)
            self._due -= batch is not None
            return batch
        batch = self._online.get(should_stop)
        if batch is not None:
            self._due = int(self._random.poisson(self._ratio))
        return batch

    @property
    def unconsumed_steps(self) -> int:
        """See `batch_sources.BatchSource`."""
        return self._online.unconsumed_steps

    def metrics(self) -> dict[str, float]:
        """See `batch_sources.BatchSource`."""
        return self._online.metrics()

    def close(self) -> None:
        """See `batch_sources.BatchSource`."""
        self._online.close()
        self._replayed.close()

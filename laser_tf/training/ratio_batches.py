"""Batches of online unrolls alone, each followed by some from replay alone."""

from collections.abc import Callable, Sequence

import numpy as np

from laser_tf.replay import stored_unroll
from laser_tf.training import batches, joint_batches


class RatioBatchStream:
    """After each batch of online unrolls so many of replayed ones as Poisson's distribution says.

    ACER, algorithm 1. An unroll is in replay before it is in the queue, so that whatever an online
    batch is followed by need not be waited for: replay holds at least that batch.
    """

    def __init__(
        self,
        online: batches.MixedBatchStream | joint_batches.JointBatchStream,
        replayed: batches.Stream,
        replay_ratio: float,
        seed: Sequence[int],
    ):
        """Takes its batches from streams, which fetch in the background and which it closes.

        Args:
          online: `stored_unroll.Batch`es of online entries alone.
          replayed: of as many replayed entries alone.
          replay_ratio: r, the mean number of replayed batches after an online one.
          seed: of their numbers; the same for all learners that update as one, so that the kinds of
            their batches are the same, too.
        """
        self._online = online
        self._replayed = replayed
        self._ratio = replay_ratio
        self._random = np.random.default_rng(seed)
        self._owed = 0  # replayed batches before the next online one
        self.accounting = online.accounting

    def get(self, should_stop: Callable[[], bool]) -> stored_unroll.Batch | None:
        """See `batches.Stream`."""
        if self._owed:
            batch = self._replayed.get(should_stop)
            self._owed -= batch is not None
            return batch
        batch = self._online.get(should_stop)
        if batch is not None:
            self._owed = int(self._random.poisson(self._ratio))
        return batch

    @property
    def untaken_steps(self) -> int:
        """See `batches.BatchStream`."""
        return self._online.untaken_steps

    def close(self) -> None:
        """See `batches.Stream`."""
        self._online.close()
        self._replayed.close()

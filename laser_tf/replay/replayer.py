"""The replayer: whole episodes in, unrolls with exact core states out (LASER, section A.2).

Each entry of a batch replays an episode from its start. With every batch it moves on by one unroll,
and the newest weights carry its core state on: one forward pass without gradient for each learning
step. Every transition of a drawn episode is handed out exactly once, in order.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import tree

from laser_tf.replay import stored_unroll


class Replayer:
    """The replayed entries of the learner's batches."""

    def __init__(
        self,
        entries: int,
        unroll_signature: stored_unroll.StoredUnroll,
        next_state: Callable[[stored_unroll.StoredUnroll], Any],
    ):
        """Starts without any episode.

        Args:
          entries: of a batch that are replayed.
          unroll_signature: of an unroll with its core state.
          next_state: carries the core states of a batch [entries, ...] on, from before step 0
            to before the last step, which is the next unrolls' first.
        """
        blank = stored_unroll.blank(unroll_signature)
        self._blank = blank._replace(core_state=())
        self._states = tree.map_structure(
            lambda state: np.stack([state] * entries), blank.core_state
        )
        self._next_state = next_state
        self._pending: list[list[stored_unroll.StoredUnroll]] = [[] for _ in range(entries)]

    def next_batch(
        self, draw: Callable[[], stored_unroll.StoredUnroll | None]
    ) -> stored_unroll.StoredUnroll:
        """Returns the next unroll of each entry's episode.

        Args:
          draw: returns another episode, arrays [n, ...], or None where there is none yet. An entry
            without an episode gets an unroll without transitions.

        Returns:
          [entries, ...], with the core states before step 0.
        """
        batch = tree.map_structure(
            lambda *unrolls: np.stack(unrolls),
            *(self._next_unroll(pending, draw) for pending in self._pending),
        )
        batch = batch._replace(core_state=self._states)
        self._states = self._next_state(batch)
        return batch

    def _next_unroll(
        self,
        pending: list[stored_unroll.StoredUnroll],
        draw: Callable[[], stored_unroll.StoredUnroll | None],
    ) -> stored_unroll.StoredUnroll:
        if not pending:
            episode = draw()
            if episode is None:
                return self._blank
            for index in reversed(range(len(episode.env_output.reward))):
                pending.append(tree.map_structure(lambda leaf, index=index: leaf[index], episode))
        return pending.pop()

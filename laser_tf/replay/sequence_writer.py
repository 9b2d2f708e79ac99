"""Writing overlapping sequences of a game to replay (R2D2, section 2.3).

A sequence is S unrolls in a row, [S, T + 1, ...]: first those of the burn-in, then those that are
learned from. Sequences never cross an episode's end. Blank unrolls, without any transition, stand
for the burn-in before an episode's start, so that its first steps are learned from, too, and for
what a sequence lacks behind its end. All sequences refer to the same unrolls: the overlap costs no
memory.
"""

import math
from collections.abc import Callable

import numpy as np
import tree

from laser_tf.replay import connection, game_writer, replay_config, stored_unroll, unroll_buffer


class SequenceWriter(game_writer.GameWriter):
    """Writes a sequence as soon as it is complete, and counts each unroll in the queue."""

    def __init__(
        self,
        replay: connection.ReplayConnection,
        buffer: unroll_buffer.UnrollBuffer,
        config: replay_config.ReplayConfig,
        queue: str,
        unroll_signature: stored_unroll.StoredUnroll,
        priority: Callable[[stored_unroll.StoredUnroll], float],
    ):
        """Prepares a stream for each game.

        Args:
          replay: where to write.
          buffer: where unrolls are filled.
          config: of the tables.
          queue: the learner's.
          unroll_signature: of an unroll.
          priority: of a new sequence, from its unrolls [S, ...] without observations and states.
        """
        length = config.unroll_length
        self._burn_in = config.burn_in // length
        self._size = config.steps_per_entry // length
        self._period = config.steps_per_item // length
        super().__init__(replay, buffer, self._size, unroll_signature)
        self._table, self._queue = config.replay_table, queue
        self._blank = stored_unroll.blank(unroll_signature)
        self._priority = priority
        self._recent: list[list[stored_unroll.StoredUnroll]] = [[] for _ in self._streams]

    def _append(self, game: int, unroll: stored_unroll.StoredUnroll) -> None:
        if not self._unrolls[game]:
            self._recent[game] = []
            # After a stream's loss the episode's next steps are the burn-in instead.
            for _ in range(self._burn_in if stored_unroll.begins_episode(unroll) else 0):
                self._append_unroll(game, self._blank_before(unroll))
        self._append_unroll(game, unroll)
        columns = tree.map_structure(lambda column: column[-1], self._streams[game].history)
        self._streams[game].create_item(self._queue, 1.0, stored_unroll.count_of(columns))

    def _end(self, game: int) -> None:
        last = self._recent[game][-1]
        while self._missing(game):
            self._append_unroll(game, self._blank_beside(last))

    def _blank_beside(self, unroll: stored_unroll.StoredUnroll) -> stored_unroll.StoredUnroll:
        """An unroll without transitions, said to be of the same game."""
        return self._blank._replace(
            task=unroll.task, member=unroll.member, learner_update=unroll.learner_update
        )

    def _blank_before(self, unroll: stored_unroll.StoredUnroll) -> stored_unroll.StoredUnroll:
        """One whose last step is the first of an episode's first unroll, as of any neighbours."""
        blank = self._blank_beside(unroll)
        steps = stored_unroll.num_steps(unroll.env_output)
        env_output, agent_output = tree.map_structure(
            lambda leaf, first: np.concatenate([leaf[:-1], first[-steps][None]]),
            (blank.env_output, blank.agent_output),
            (unroll.env_output, unroll.agent_output),
        )
        return blank._replace(
            env_output=env_output, agent_output=agent_output, next_core_state=unroll.core_state
        )

    def _append_unroll(self, game: int, unroll: stored_unroll.StoredUnroll) -> None:
        stream = self._streams[game]
        stream.append(unroll)
        self._unrolls[game] += 1
        # The buffer will be overwritten: a copy of what priorities are made of.
        small = unroll._replace(
            env_output=unroll.env_output._replace(observation=()),
            core_state=(),
            next_core_state=(),
        )
        self._recent[game].append(tree.map_structure(np.copy, small))
        if self._missing(game):
            return
        recent = self._recent[game] = self._recent[game][-self._size :]
        priority = self._priority(tree.map_structure(lambda *parts: np.stack(parts), *recent))
        trajectory = tree.map_structure(lambda column: column[-self._size :], stream.history)
        # Of weights that are not finite. Reverb refuses NaN, and an infinite one is all it draws.
        usable = priority if math.isfinite(priority) and priority >= 0 else 0.0
        stream.create_item(self._table, usable, trajectory)

    def _missing(self, game: int) -> int:
        """Unrolls that the sequence which is being filled lacks."""
        unrolls = self._unrolls[game]
        return (
            self._size - unrolls if unrolls < self._size else (self._size - unrolls) % self._period
        )

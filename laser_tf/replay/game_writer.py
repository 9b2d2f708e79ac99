"""Cutting each game's episodes, from their starts, into unrolls."""

import abc
from collections.abc import Callable
from typing import Any

import numpy as np

from laser_tf import types
from laser_tf.replay import connection, recorder, stored_unroll, stream, unroll_buffer


class GameWriter(recorder.Recorder):
    """Gathers the steps of N games; each has a stream to replay, and cuts of its own.

    The steps that follow an episode's end in its last unroll have `is_first`, so that losses mask
    them.

    A stream that is lost takes along what replay had not confirmed, and the history that the
    game's next items were to refer to: see `_cut`.
    """

    def __init__(
        self,
        replay: connection.ReplayConnection,
        buffer: unroll_buffer.UnrollBuffer,
        unrolls_kept: int,
        signature: stored_unroll.StoredUnroll | None = None,
    ):
        """Prepares a stream for each game, which its first unroll opens.

        Args:
          replay: where to write.
          buffer: where unrolls are filled.
          unrolls_kept: of each game, which items may refer to.
          signature: see `stream.Stream`.
        """
        self._streams = [
            stream.Stream(replay, unrolls_kept, signature) for _ in range(buffer.num_envs)
        ]
        self._buffer = buffer
        self._steps = np.zeros(buffer.num_envs, int)  # filled in each game's buffer
        self._unrolls = np.zeros(buffer.num_envs, int)  # appended of each game's episode
        self._new_steps = np.zeros(buffer.num_envs, int)  # of each game that no unroll counts yet

    def add(
        self,
        env_output: types.EnvOutput,
        agent_output: types.AgentOutput,
        core_state: Any,
        learner_update: int,
        should_stop: Callable[[], bool],
    ) -> None:
        """See `Recorder`."""
        for game in np.flatnonzero(env_output.is_first):
            self._finish_episode(game, learner_update, should_stop)
        self._buffer.write(self._steps, env_output, agent_output, core_state)
        self._steps += 1
        self._new_steps += 1
        for game in np.flatnonzero(self._steps > self._buffer.last_step):
            self._hand_over(game, learner_update, should_stop)
            self._buffer.carry_over(game)
            self._steps[game] = 1

    def wait(self, should_stop: Callable[[], bool]) -> None:
        """See `Recorder`."""
        for game, stream_ in enumerate(self._streams):
            try:
                stream_.flush(should_stop)
            except stream.StreamLostError:
                self._cut(game)

    def close(self) -> None:
        """See `Recorder`; episodes that are not over are lost."""
        stream.close_all(self._streams)

    def _finish_episode(
        self, game: int, learner_update: int, should_stop: Callable[[], bool]
    ) -> None:
        """Writes what is left of the episode that ended in the step before, if there was one."""
        if self._steps[game] > 1:  # a single step is an end that the last unroll has already
            self._buffer.end_episode(game, self._steps[game])
            self._hand_over(game, learner_update, should_stop)
        if self._unrolls[game]:
            try:
                self._end(game)
                self._streams[game].end_episode(should_stop)
            except stream.StreamLostError:
                self._cut(game)
        self._steps[game] = self._unrolls[game] = 0

    def _hand_over(self, game: int, learner_update: int, should_stop: Callable[[], bool]) -> None:
        """Writes a game's full unroll, with another stream where the first is lost."""
        unroll = self._take_unroll(game, learner_update)
        while self._streams[game].open(should_stop):
            try:
                self._append(game, unroll)
                return
            except stream.StreamLostError:
                self._cut(game)

    def _take_unroll(self, game: int, learner_update: int) -> stored_unroll.StoredUnroll:
        unroll = self._buffer.unroll(game, learner_update, self._new_steps[game])
        self._new_steps[game] = 0
        return unroll

    @abc.abstractmethod
    def _append(self, game: int, unroll: stored_unroll.StoredUnroll) -> None:
        """Appends a game's full unroll to its stream, and counts it."""

    def _cut(self, game: int) -> None:
        """Takes that the stream of a game, with its history, is lost in the midst of an episode."""
        self._unrolls[game] = 0

    @abc.abstractmethod
    def _end(self, game: int) -> None:
        """Makes the last items of a game's episode."""

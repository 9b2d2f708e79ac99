"""Cutting each game's episodes, from their starts, into unrolls."""

import abc
from collections.abc import Callable
from typing import Any

import numpy as np
import reverb

from laser_tf import types
from laser_tf.replay import recorder, stored_unroll, unroll_buffer, writer


class GameWriter(recorder.Recorder):
    """Gathers the steps of N games; each has a stream to replay, and cuts of its own.

    The steps that follow an episode's end in its last unroll have `is_first`, so that losses mask
    them.
    """

    def __init__(
        self, client: reverb.Client, buffer: unroll_buffer.UnrollBuffer, unrolls_kept: int
    ):
        """Opens a stream for each game.

        Args:
          client: of the replay server.
          buffer: where unrolls are filled.
          unrolls_kept: of each game, which items may refer to.
        """
        self._writers = [client.trajectory_writer(unrolls_kept) for _ in range(buffer.num_envs)]
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
            self._append(game, self._take_unroll(game, learner_update))
            self._buffer.carry_over(game)
            self._steps[game] = 1

    def wait(self, should_stop: Callable[[], bool]) -> None:
        """See `Recorder`."""
        for stream in self._writers:
            writer.flush(stream, should_stop)

    def close(self) -> None:
        """See `Recorder`; episodes that are not over are lost."""
        for stream in self._writers:
            stream.close()

    def _finish_episode(
        self, game: int, learner_update: int, should_stop: Callable[[], bool]
    ) -> None:
        """Writes what is left of the episode that ended in the step before, if there was one."""
        if self._steps[game] > 1:  # a single step is an end that the last unroll has already
            self._buffer.end_episode(game, self._steps[game])
            self._append(game, self._take_unroll(game, learner_update))
        if self._unrolls[game]:
            self._end(game)
            self._close_episode(self._writers[game], should_stop)
        self._steps[game] = self._unrolls[game] = 0

    def _close_episode(
        self, stream: reverb.TrajectoryWriter, should_stop: Callable[[], bool]
    ) -> None:
        while not should_stop():
            try:
                stream.end_episode(timeout_ms=writer.TIMEOUT_MS)
                return
            except reverb.DeadlineExceededError:
                continue

    def _take_unroll(self, game: int, learner_update: int) -> stored_unroll.StoredUnroll:
        unroll = self._buffer.unroll(game, learner_update, self._new_steps[game])
        self._new_steps[game] = 0
        return unroll

    @abc.abstractmethod
    def _append(self, game: int, unroll: stored_unroll.StoredUnroll) -> None:
        """Appends a game's full unroll to its stream, and counts it."""

    @abc.abstractmethod
    def _end(self, game: int) -> None:
        """Makes the last items of a game's episode."""

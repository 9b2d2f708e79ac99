"""The base of writers that cut the episodes of each environment separately."""

import abc
from collections.abc import Callable
from typing import Any

import numpy as np

from laser_tf import types
from laser_tf.replay import connection, resilient_writer, stored_unroll, unroll_buffer, writers


class EnvWriter(writers.Writer):
    """Cuts the episodes of N environments, each from its start, into unrolls with separate writers.

    The steps that follow an episode's end in its last unroll have `is_first`, so that losses mask
    them.

    If a Reverb writer is lost, so is what replay has not confirmed, and the history that the
    environment's next items would refer to: see `_cut`.
    """

    def __init__(
        self,
        replay: connection.ReplayConnection,
        buffer: unroll_buffer.UnrollBuffer,
        unrolls_kept: int,
        signature: stored_unroll.StoredUnroll | None = None,
    ):
        """Creates a writer for each environment, which its first unroll opens.

        Args:
          replay: Connection to the server.
          buffer: Buffer that unrolls are filled in.
          unrolls_kept: Unrolls of each environment that items may refer to.
          signature: See `resilient_writer.ResilientWriter`.
        """
        self._writers = [
            resilient_writer.ResilientWriter(replay, unrolls_kept, signature)
            for _ in range(buffer.num_envs)
        ]
        self._buffer = buffer
        self._steps = np.zeros(buffer.num_envs, int)  # filled in the buffer
        self._unrolls = np.zeros(buffer.num_envs, int)  # appended of the episode
        self._new_steps = np.zeros(buffer.num_envs, int)  # that no unroll counts yet

    def add(
        self,
        env_output: types.EnvOutput,
        agent_output: types.AgentOutput,
        core_state: Any,
        learner_update: int,
        should_stop: Callable[[], bool],
    ) -> None:
        """See `Writer`."""
        for index in np.flatnonzero(env_output.is_first):
            self._finish_episode(index, learner_update, should_stop)
        self._buffer.write(self._steps, env_output, agent_output, core_state)
        self._steps += 1
        self._new_steps += 1
        for index in np.flatnonzero(self._steps > self._buffer.last_step):
            self._hand_over(index, learner_update, should_stop)
            self._buffer.carry_over(index)
            self._steps[index] = 1

    def wait(self, should_stop: Callable[[], bool]) -> None:
        """See `Writer`."""
        for index, writer in enumerate(self._writers):
            try:
                writer.flush(should_stop)
            except resilient_writer.WriterLostError:
                self._cut(index)

    def close(self) -> None:
        """See `Writer`; unfinished episodes are lost."""
        resilient_writer.close_all(self._writers)

    def _finish_episode(
        self, index: int, learner_update: int, should_stop: Callable[[], bool]
    ) -> None:
        """Writes the rest of the episode that ended in the step before, if any."""
        if self._steps[index] > 1:  # a single step is an end that the last unroll has already
            self._buffer.end_episode(index, self._steps[index])
            self._hand_over(index, learner_update, should_stop)
        if self._unrolls[index]:
            try:
                self._end(index)
                self._writers[index].end_episode(should_stop)
            except resilient_writer.WriterLostError:
                self._cut(index)
        self._steps[index] = self._unrolls[index] = 0

    def _hand_over(self, index: int, learner_update: int, should_stop: Callable[[], bool]) -> None:
        """Writes a full unroll, with another Reverb writer if the first is lost."""
        unroll = self._take_unroll(index, learner_update)
        while self._writers[index].open(should_stop):
            try:
                self._append(index, unroll)
                return
            except resilient_writer.WriterLostError:
                self._cut(index)

    def _take_unroll(self, index: int, learner_update: int) -> stored_unroll.StoredUnroll:
        unroll = self._buffer.unroll(index, learner_update, self._new_steps[index])
        self._new_steps[index] = 0
        return unroll

    @abc.abstractmethod
    def _append(self, index: int, unroll: stored_unroll.StoredUnroll) -> None:
        """Appends a full unroll of an environment to its writer, and counts it."""

    def _cut(self, index: int) -> None:
        """Starts a new history after the loss of an environment's writer within an episode."""
        self._unrolls[index] = 0

    @abc.abstractmethod
    def _end(self, index: int) -> None:
        """Creates the last items of an environment's episode."""

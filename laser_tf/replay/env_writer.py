"""The base of writers that cut the episodes of each environment separately."""

import abc
from collections.abc import Callable

import numpy as np

from laser_tf.replay import resilient_writer, stored_unroll, writers
from laser_tf.replay.schemes import base


class EnvWriter(writers.Writer):
    """Cuts the episodes of N environments, each from its start, into unrolls with separate writers.

    The steps that follow an episode's end in its last unroll have `is_first`, so that losses mask
    them.

    If a Reverb writer is lost, so is what replay has not confirmed, and the history that the
    environment's next items would refer to. The environment's history then starts again.
    """

    def __init__(
        self,
        context: base.ActorContext,
        signature: stored_unroll.StoredUnroll,
        unrolls_kept: int,
        *,
        separate_chunks: bool = False,
    ):
        """Creates a `ResilientWriter` for each environment, which its first unroll opens."""
        self._buffer = writers.UnrollBuffer(signature, context.task_ids, context.member_index)
        self._writers = [
            resilient_writer.ResilientWriter(
                context.replay, unrolls_kept, signature if separate_chunks else None
            )
            for _ in context.task_ids
        ]
        self._unrolls = np.zeros(len(self._writers), int)  # Appended unrolls of the episode.
        self._new_steps = np.zeros(len(self._writers), int)  # Agent steps that no unroll contains.

    def add(self, step: writers.Step, should_stop: Callable[[], bool]) -> None:
        """See `Writer`."""
        for index in np.flatnonzero(step.env_output.is_first):
            self._finish_episode(index, step.learner_update, should_stop)
        self._buffer.write(step)
        self._new_steps += 1
        for index in np.flatnonzero(self._buffer.steps > self._buffer.last_step):
            self._write_unroll(index, step.learner_update, should_stop)
            self._buffer.carry_over(index)

    def wait(self, should_stop: Callable[[], bool]) -> None:
        """See `Writer`."""
        for index, writer in enumerate(self._writers):
            try:
                writer.flush(should_stop)
            except resilient_writer.WriterLostError:
                self._unrolls[index] = 0

    def close(self) -> None:
        """See `Writer`; unfinished episodes are lost."""
        resilient_writer.close_all(self._writers)

    def _finish_episode(
        self, index: int, learner_update: int, should_stop: Callable[[], bool]
    ) -> None:
        """Writes the rest of the episode that ended in the step before, if any."""
        if self._buffer.steps[index] > 1:  # The previous unroll contains step 0.
            self._buffer.end_episode(index)
            self._write_unroll(index, learner_update, should_stop)
        if self._unrolls[index]:
            try:
                self._end(index)
                self._writers[index].end_episode(should_stop)
            except resilient_writer.WriterLostError:
                pass
        self._buffer.steps[index] = self._unrolls[index] = 0

    def _write_unroll(
        self, index: int, learner_update: int, should_stop: Callable[[], bool]
    ) -> None:
        """Writes a full unroll, with another Reverb writer if the first is lost."""
        unroll = self._buffer.take_unroll(index, learner_update, self._new_steps[index])
        self._new_steps[index] = 0
        while self._writers[index].open(should_stop):
            try:
                self._append(index, unroll)
                return
            except resilient_writer.WriterLostError:
                self._unrolls[index] = 0

    @abc.abstractmethod
    def _append(self, index: int, unroll: stored_unroll.StoredUnroll) -> None:
        """Appends a full unroll of an environment to its writer, and counts it."""

    @abc.abstractmethod
    def _end(self, index: int) -> None:
        """Creates the last items of an environment's episode."""

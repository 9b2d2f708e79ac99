"""Writers that cut the steps of an actor's environments into unrolls and send them to replay."""

import abc
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from laser_tf import types
from laser_tf.replay import resilient_writer, stored_unroll
from laser_tf.replay.schemes import base


class Step(NamedTuple):
    """A time step of N environments; arrays [N, ...]."""

    env_output: types.EnvOutput  # single frames
    agent_output: types.AgentOutput
    core_state: Any  # before the step
    learner_update: int  # number of updates of the weights that acted


class Writer(abc.ABC):
    """Takes the steps of N environments and writes them to tables of replay.

    `should_stop` returns True to stop waiting for the server.
    """

    @abc.abstractmethod
    def add(self, step: Step, should_stop: Callable[[], bool]) -> None:
        """Takes the next step of all environments."""

    @abc.abstractmethod
    def wait(self, should_stop: Callable[[], bool]) -> None:
        """Blocks until all complete unrolls are in their tables: a full queue blocks the actor."""

    @abc.abstractmethod
    def close(self) -> None:
        """Closes without waiting; incomplete unrolls are lost."""


class UnrollBuffer:
    """The T + 1 steps that an actor fills for N environments, with their frame history."""

    def __init__(
        self, signature: stored_unroll.StoredUnroll, task_ids: np.ndarray, member: int = 0
    ):
        num_envs = len(task_ids)
        length = stored_unroll.num_steps(signature.env_output)
        self.last_step = length - 1  # T
        self.steps = np.zeros(num_envs, int)  # filled; T + 1 complete an unroll
        self._task_ids = task_ids
        self._member = np.int32(member)
        # 63 random bits, so that a collision is improbable. Sorted, because serial runs order items
        # by stream.
        self._streams = sorted(np.int64(secrets.randbits(63)) for _ in task_ids)
        self._next_numbers = np.zeros(num_envs, np.int64)  # Of the next unrolls.
        self._stores_next_state = signature.next_core_state != ()
        states = tree.map_structure(
            lambda spec: tf.TensorSpec([length, *spec.shape], spec.dtype), signature.core_state
        )
        every_step = (signature.env_output, signature.agent_output, states)
        self._structure = every_step
        # Flat, because mapping over nests would cost more than the copying.
        self._arrays = [
            np.zeros([spec.shape[0], num_envs, *spec.shape[1:]], spec.dtype.as_numpy_dtype)
            for spec in tree.flatten(every_step)
        ]
        self._histories = [len(array) - length for array in self._arrays]
        # Index of `is_first` in `_arrays`.
        self._is_first = len(tree.flatten(signature.env_output[:3]))

    def write(self, step: Step) -> None:
        """Stores the next step of every environment; carries over full unrolls first."""
        full = np.flatnonzero(self.steps > self.last_step)
        if full.size:
            self.carry_over(full)
        leaves = tree.flatten((step.env_output, step.agent_output, step.core_state))
        time_steps, environments = self.steps, np.arange(len(self.steps))
        if (time_steps == time_steps[0]).all():  # A slice is faster than an index array.
            time_steps, environments = time_steps[0], slice(None)
        # Some unrolls hold no states, which come last.
        for array, history, leaf in zip(self._arrays, self._histories, leaves, strict=False):
            array[time_steps + history, environments] = leaf
        self.steps += 1

    def take_unroll(
        self, index: int, learner_update: int, new_steps: int | None = None
    ) -> stored_unroll.StoredUnroll:
        """Returns views, valid until the next write, of the filled unroll of environment `index`.

        Increments the unroll number. `new_steps` counts the agent steps that no earlier unroll
        contains; None means T.
        """
        env_output, agent_output, states = tree.unflatten_as(
            self._structure, [array[:, index] for array in self._arrays]
        )
        number = self._next_numbers[index]
        self._next_numbers[index] += 1
        next_states = tree.map_structure(lambda state: state[self.last_step], states)
        return stored_unroll.StoredUnroll(
            env_output=env_output,
            agent_output=agent_output,
            core_state=tree.map_structure(lambda state: state[0], states),
            next_core_state=next_states if self._stores_next_state else (),
            task=self._task_ids[index],
            member=self._member,
            learner_update=np.int64(learner_update),
            new_steps=np.int64(self.last_step if new_steps is None else new_steps),
            stream=self._streams[index],
            number=number,
        )

    def carry_over(self, index: int | np.ndarray) -> None:
        """Makes the last step, with its history, the first step of the next unroll."""
        for array in self._arrays:
            kept = len(array) - self.last_step
            array[:kept, index] = array[self.last_step :, index].copy()
        self.steps[index] = 1

    def end_episode(self, index: int) -> None:
        """Sets `is_first` on the unfilled steps of an environment, so that losses mask them."""
        first = self._histories[self._is_first] + self.steps[index]
        self._arrays[self._is_first][first:, index] = True


class UnrollWriter(resilient_writer.UnrollStream, Writer):
    """Fills unrolls of N environments in parallel and writes all of them at once."""

    def __init__(self, scheme: base.ReplayScheme, context: base.ActorContext):
        super().__init__(context.replay, scheme.unroll_tables(context.replay.queue))
        self._buffer = UnrollBuffer(context.signature, context.task_ids, context.member_index)

    def add(self, step: Step, should_stop: Callable[[], bool]) -> None:
        """See `Writer`."""
        self._buffer.write(step)
        full = np.flatnonzero(self._buffer.steps > self._buffer.last_step)
        if full.size:  # All environments fill in lockstep.
            unrolls = [self._buffer.take_unroll(index, step.learner_update) for index in full]
            self.write(unrolls, should_stop)


class EnvWriter(Writer):
    """Cuts the episodes of N environments, each from its start, into unrolls with separate writers.

    Steps after an episode's end in its last unroll have `is_first`, so that losses mask them. If a
    Reverb writer is lost, the environment's history, which its next items refer to, starts again.
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
        self._buffer = UnrollBuffer(signature, context.task_ids, context.member_index)
        self._writers = [
            resilient_writer.ResilientWriter(
                context.replay, unrolls_kept, signature if separate_chunks else None
            )
            for _ in context.task_ids
        ]
        self._unrolls = np.zeros(len(self._writers), int)  # Appended unrolls of the episode.
        self._new_steps = np.zeros(len(self._writers), int)  # Agent steps that no unroll contains.

    def add(self, step: Step, should_stop: Callable[[], bool]) -> None:
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

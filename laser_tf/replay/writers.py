"""Writers that cut the steps of an actor's environments into unrolls and send them to replay."""

import abc
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tree

from laser_tf import types
from laser_tf.replay import connection, resilient_writer, stored_unroll
from laser_tf.replay.schemes import base

_MAX_PENDING = 32  # Items that are being sent; Reverb warns above 50.


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
    """The T + 1 steps that an actor fills for N environments, with their frame history.

    Attributes:
      last_step: T.
      steps: Filled steps of each environment, integers [N]; T + 1 complete an unroll.
    """

    def __init__(
        self, signature: stored_unroll.StoredUnroll, task_ids: np.ndarray, member: int = 0
    ):
        num_envs = len(task_ids)
        length = stored_unroll.num_steps(signature.env_output)
        self.last_step = length - 1
        self.steps = np.zeros(num_envs, int)
        self._task_ids = task_ids
        self._member = np.int32(member)
        # 63 random bits, so that a collision is improbable.
        self._streams = [np.int64(secrets.randbits(63)) for _ in task_ids]
        self._next_numbers = np.zeros(num_envs, np.int64)  # Of the next unrolls.
        self._stores_next_state = signature.next_core_state != ()
        states = tree.map_structure(
            lambda spec: tf.TensorSpec([length, *spec.shape], spec.dtype), signature.core_state
        )
        every_step = (signature.env_output, signature.agent_output, states)
        self._structure = tree.map_structure(lambda _: 0, every_step)
        # Flat, because mapping over nests would cost more than the copying.
        self._arrays = [
            np.zeros([spec.shape[0], num_envs, *spec.shape[1:]], spec.dtype.as_numpy_dtype)
            for spec in tree.flatten(every_step)
        ]
        self._histories = [len(array) - length for array in self._arrays]
        self._is_first = len(
            tree.flatten(signature.env_output[:3])
        )  # Index of `is_first` in `_arrays`.

    def write(self, step: Step) -> None:
        """Stores the next step of every environment.

        Carries the last step of full unrolls over first.
        """
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
        """Returns views of the filled unroll of an environment and increments its unroll number.

        The views are valid until the next write.

        Args:
          index: Index of the environment.
          learner_update: Number of updates of the weights that acted.
          new_steps: Agent steps that no earlier unroll contains; None means T.
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


class UnrollStream:
    """Sends complete unrolls: one Reverb step and chunk each, shared by the items of all tables.

    A Reverb step per unroll costs a quarter of the Python time of a step per agent step.

    Each unroll arrives at least once, even if the server is killed: an unroll that may not be in
    its tables is written again.
    """

    def __init__(self, replay: connection.ReplayConnection, table_names: Mapping[str, bool]):
        """Creates a stream to tables, see `ReplayScheme.unroll_tables`."""
        self._writer = resilient_writer.ResilientWriter(replay, unrolls_kept=1)
        self._table_names = table_names
        self._unrolls: Sequence[stored_unroll.StoredUnroll] = ()

    def write(
        self,
        unrolls: Sequence[stored_unroll.StoredUnroll],
        should_stop: Callable[[], bool],
        max_pending: int = _MAX_PENDING,
    ) -> None:
        """Sends unrolls in the background; blocks while more than `max_pending` items are pending.

        The arrays must stay unchanged until `wait` or the next call.
        """
        writer, self._unrolls = self._writer, unrolls
        while writer.open(should_stop):
            try:
                for unroll in unrolls:
                    writer.append(unroll)
                    trajectory = tree.map_structure(lambda leaf: leaf[-1], writer.history)
                    for table, is_full_unroll in self._table_names.items():
                        item = trajectory if is_full_unroll else stored_unroll.header_of(trajectory)
                        writer.create_item(table, 1.0, item)
                    writer.flush(should_stop, _MAX_PENDING)
                writer.flush(should_stop, max_pending)
                return
            except resilient_writer.WriterLostError:
                continue

    def wait(self, should_stop: Callable[[], bool]) -> None:
        """Blocks until all items are in their tables, also while the queue is full."""
        try:
            self._writer.flush(should_stop)
        except resilient_writer.WriterLostError:
            self.write(self._unrolls, should_stop, max_pending=0)
        self._unrolls = ()

    def close(self) -> None:
        """Closes the stream without waiting for a server that may be gone."""
        self._writer.close()


class UnrollWriter(Writer):
    """Fills unrolls of N environments in parallel and writes all of them at once."""

    def __init__(self, scheme: base.ReplayScheme, context: base.ActorContext):
        self._stream = UnrollStream(context.replay, scheme.unroll_tables(context.replay.queue))
        self._buffer = UnrollBuffer(context.signature, context.task_ids, context.member_index)

    def add(self, step: Step, should_stop: Callable[[], bool]) -> None:
        """See `Writer`."""
        self._buffer.write(step)
        full = np.flatnonzero(self._buffer.steps > self._buffer.last_step)
        if full.size:  # All environments fill in lockstep.
            unrolls = [self._buffer.take_unroll(index, step.learner_update) for index in full]
            self._stream.write(unrolls, should_stop)

    def wait(self, should_stop: Callable[[], bool]) -> None:
        """See `Writer`."""
        self._stream.wait(should_stop)

    def close(self) -> None:
        """See `Writer`."""
        self._stream.close()

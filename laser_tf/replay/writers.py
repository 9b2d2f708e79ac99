"""Writers that cut the steps of an actor's environments into unrolls and send them to replay."""

import abc
from collections.abc import Callable, Sequence
from typing import Any

import tree

from laser_tf import types
from laser_tf.replay import connection, resilient_writer, stored_unroll, unroll_buffer
from laser_tf.replay.schemes import base

_MAX_PENDING = 32  # Items that are being sent; Reverb warns above 50.


class Writer(abc.ABC):
    """Takes the steps of N environments and writes them to tables of replay."""

    @abc.abstractmethod
    def add(
        self,
        env_output: types.EnvOutput,
        agent_output: types.AgentOutput,
        core_state: Any,
        learner_update: int,
        should_stop: Callable[[], bool],
    ) -> None:
        """Takes the next step of every environment, arrays [N, ...].

        Args:
          env_output: The environments' output with single frames.
          agent_output: The agent's output at this step.
          core_state: The agent's core state before the step.
          learner_update: Number of updates of the weights that acted.
          should_stop: Returns True to stop waiting for the server.
        """

    @abc.abstractmethod
    def wait(self, should_stop: Callable[[], bool]) -> None:
        """Blocks until all complete unrolls are in their tables: a full queue blocks the actor."""

    @abc.abstractmethod
    def close(self) -> None:
        """Closes without waiting; incomplete unrolls are lost."""


class UnrollStream:
    """Sends complete unrolls: one Reverb step and chunk each, shared by the items of all tables.

    A Reverb step per unroll costs a quarter of the Python time of a step per agent step.

    Each unroll arrives at least once, even if the server is killed: an unroll that may not be in
    its tables is written again.
    """

    def __init__(
        self,
        replay: connection.ReplayConnection,
        table_names: Sequence[str],
        counting: Sequence[str] = (),
    ):
        """Creates a stream, which the first unroll opens.

        Args:
          replay: Connection to the server.
          table_names: Tables that get an item of every unroll, see `ReplayScheme.unroll_tables`.
          counting: Tables that get only its `Count`.
        """
        self._stream = resilient_writer.ResilientWriter(replay, unrolls_kept=1)
        self._table_names = tuple(table_names)
        self._counting = tuple(counting)
        self._unrolls: tuple[stored_unroll.StoredUnroll, ...] = ()
        self._is_sent = True

    def write(
        self, unrolls: Sequence[stored_unroll.StoredUnroll], should_stop: Callable[[], bool]
    ) -> None:
        """Starts sending unrolls in the background; blocks while too many are pending.

        Args:
          unrolls: Arrays that stay unchanged until `wait` or the next call.
          should_stop: Returns True to stop waiting for the server.

        Raises:
          ValueError: If another server with other tables has taken the server's place.
        """
        self._unrolls, self._is_sent = tuple(unrolls), False
        self._deliver(should_stop, _MAX_PENDING)

    def wait(self, should_stop: Callable[[], bool]) -> None:
        """Blocks until all items are in their tables, also while the queue is full.

        Raises:
          ValueError: See `write`.
        """
        self._deliver(should_stop, 0)
        self._unrolls = ()

    def _deliver(self, should_stop: Callable[[], bool], pending: int) -> None:
        while self._stream.open(should_stop):
            try:
                if not self._is_sent:
                    for unroll in self._unrolls:
                        self._send(unroll)
                        self._stream.flush(should_stop, _MAX_PENDING)
                    self._is_sent = True
                self._stream.flush(should_stop, pending)
                return
            except resilient_writer.WriterLostError:
                self._is_sent = False

    def _send(self, unroll: stored_unroll.StoredUnroll) -> None:
        self._stream.append(unroll)
        trajectory = tree.map_structure(lambda leaf: leaf[-1], self._stream.history)
        for table in self._table_names:
            self._stream.create_item(table, 1.0, trajectory)
        for table in self._counting:
            self._stream.create_item(table, 1.0, stored_unroll.count_of(trajectory))

    def close(self) -> None:
        """Closes the stream without waiting for a server that may be gone."""
        self._stream.close()


class UnrollWriter(Writer):
    """Fills unrolls of N environments in parallel and writes all of them at once."""

    def __init__(self, stream: UnrollStream, buffer: unroll_buffer.UnrollBuffer):
        """Starts an unroll with the next step; the buffer is empty."""
        self._stream = stream
        self._buffer = buffer
        self._step = 0

    def add(
        self,
        env_output: types.EnvOutput,
        agent_output: types.AgentOutput,
        core_state: Any,
        learner_update: int,
        should_stop: Callable[[], bool],
    ) -> None:
        """See `Writer`."""
        if self._step > self._buffer.last_step:
            # Not earlier: the last unrolls might have had to be written again.
            self._buffer.carry_over()
            self._step = 1
        self._buffer.write(self._step, env_output, agent_output, core_state)
        self._step += 1
        if self._step > self._buffer.last_step:
            indices = range(self._buffer.num_envs)
            unrolls = [self._buffer.unroll(index, learner_update) for index in indices]
            self._stream.write(unrolls, should_stop)

    def wait(self, should_stop: Callable[[], bool]) -> None:
        """See `Writer`."""
        self._stream.wait(should_stop)

    def close(self) -> None:
        """See `Writer`."""
        self._stream.close()


def unroll_writer(scheme: base.ReplayScheme, context: base.ActorContext) -> UnrollWriter:
    """Creates the writer of unrolls to the tables that a scheme names."""
    queue = context.replay.queue
    stream = UnrollStream(
        context.replay, scheme.unroll_tables(queue), scheme.counting_tables(queue)
    )
    return UnrollWriter(
        stream, unroll_buffer.UnrollBuffer(context.signature, context.task_ids, context.member)
    )

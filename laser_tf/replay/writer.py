"""Writing unrolls to replay and to the learner's queue."""

from collections.abc import Callable, Sequence
from typing import Any

import tree

from laser_tf import types
from laser_tf.replay import connection, recorder, stored_unroll, stream, unroll_buffer

_MAX_PENDING = 32  # items on their way to the server; Reverb warns above 50


class UnrollWriter:
    """Appends whole unrolls: one Reverb step and chunk each, shared by the items of all tables.

    A step of Reverb per unroll costs a quarter of the Python time of a step per agent step.

    Each unroll arrives at least once, also where the server is killed meanwhile: one that is not
    known to be in its tables is written again, with the same number.
    """

    def __init__(
        self,
        replay: connection.ReplayConnection,
        table_names: Sequence[str],
        counting: Sequence[str] = (),
    ):
        """Prepares a stream, which the first unroll opens.

        The queue comes last: while it is full, it holds back what the writer sends after it.

        Args:
          replay: where to write.
          table_names: of the tables that get an item of every unroll.
          counting: names of those that get only its `Count`.
        """
        self._stream = stream.Stream(replay, unrolls_kept=1)
        self._table_names = tuple(table_names)
        self._counting = tuple(counting)
        self._unrolls: tuple[stored_unroll.StoredUnroll, ...] = ()
        self._is_sent = True

    def write(
        self, unrolls: Sequence[stored_unroll.StoredUnroll], should_stop: Callable[[], bool]
    ) -> None:
        """Hands unrolls over, sent in the background; blocks while too many are on their way.

        Args:
          unrolls: arrays that stay as they are until `wait` or the next call.
          should_stop: whether to give up waiting for the server.

        Raises:
          ValueError: if another server has taken the server's place, which takes other unrolls.
        """
        self._unrolls, self._is_sent = tuple(unrolls), False
        self._deliver(should_stop, _MAX_PENDING)

    def wait(self, should_stop: Callable[[], bool]) -> None:
        """Blocks until all items are in their tables; raises as `write` does.

        A full queue blocks, so the learner's pace holds the actor.
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
            except stream.StreamLostError:
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


class UnrollRecorder(recorder.Recorder):
    """Fills unrolls of N games side by side and writes all of them at once."""

    def __init__(self, target: UnrollWriter, buffer: unroll_buffer.UnrollBuffer):
        """Starts an unroll with the next step; the buffer is empty."""
        self._writer = target
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
        """See `Recorder`."""
        if self._step > self._buffer.last_step:
            # Not before: until now the last unrolls might have had to be written again.
            self._buffer.carry_over()
            self._step = 1
        self._buffer.write(self._step, env_output, agent_output, core_state)
        self._step += 1
        if self._step > self._buffer.last_step:
            games = range(self._buffer.num_envs)
            unrolls = [self._buffer.unroll(game, learner_update) for game in games]
            self._writer.write(unrolls, should_stop)

    def wait(self, should_stop: Callable[[], bool]) -> None:
        """See `Recorder`."""
        self._writer.wait(should_stop)

    def close(self) -> None:
        """See `Recorder`."""
        self._writer.close()

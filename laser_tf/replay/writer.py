"""Writing unrolls to replay and to the learner's queue."""

from collections.abc import Callable, Sequence
from typing import Any

import reverb
import tree

from laser_tf import types
from laser_tf.replay import recorder, stored_unroll, unroll_buffer

_MAX_PENDING = 32  # items on their way to the server; Reverb warns above 50
TIMEOUT_MS = 500


class UnrollWriter:
    """Appends whole unrolls: one Reverb step and chunk each, shared by the items of all tables.

    A step of Reverb per unroll costs a quarter of the Python time of a step per agent step.
    """

    def __init__(
        self, client: reverb.Client, table_names: Sequence[str], counting: Sequence[str] = ()
    ):
        """Opens a stream.

        The queue comes last: while it is full, it holds back what the writer sends after it.

        Args:
          client: of the replay server.
          table_names: of the tables that get an item of every unroll.
          counting: names of those that get only its `new_steps`.
        """
        self._writer = client.trajectory_writer(num_keep_alive_refs=1)
        self._table_names = tuple(table_names)
        self._counting = tuple(counting)

    def write(self, unroll: stored_unroll.StoredUnroll, should_stop: Callable[[], bool]) -> None:
        """Hands one unroll over, sent in the background; blocks while too many are on their way."""
        self._writer.append(unroll)
        trajectory = tree.map_structure(lambda leaf: leaf[-1], self._writer.history)
        for table in self._table_names:
            self._writer.create_item(table, priority=1.0, trajectory=trajectory)
        for table in self._counting:
            self._writer.create_item(table, priority=1.0, trajectory=trajectory.new_steps)
        self.wait(should_stop, pending=_MAX_PENDING)

    def wait(self, should_stop: Callable[[], bool], pending: int = 0) -> None:
        """Blocks until all but `pending` items are in their tables.

        A full queue blocks, so the learner's pace holds the actor.
        """
        flush(self._writer, should_stop, pending)

    def close(self) -> None:
        """Closes the stream without waiting for a server that may be gone."""
        self._writer.close()


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
        self._buffer.write(self._step, env_output, agent_output, core_state)
        if self._step < self._buffer.last_step:
            self._step += 1
            return
        for game in range(self._buffer.num_envs):
            self._writer.write(self._buffer.unroll(game, learner_update), should_stop)
        self._buffer.carry_over()
        self._step = 1

    def wait(self, should_stop: Callable[[], bool]) -> None:
        """See `Recorder`."""
        self._writer.wait(should_stop)

    def close(self) -> None:
        """See `Recorder`."""
        self._writer.close()


def flush(
    writer: reverb.TrajectoryWriter, should_stop: Callable[[], bool], pending: int = 0
) -> None:
    """Blocks until all but `pending` of a stream's items are in their tables."""
    while not should_stop():
        try:
            writer.flush(block_until_num_items=pending, timeout_ms=TIMEOUT_MS)
            return
        except reverb.DeadlineExceededError:
            continue

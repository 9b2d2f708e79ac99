"""Writing unrolls to replay and to the learner's queue."""

from collections.abc import Callable, Sequence

import reverb
import tree

from laser_tf.replay import stored_unroll

_MAX_PENDING = 32  # items on their way to the server; Reverb warns above 50


class UnrollWriter:
    """Appends whole unrolls: one Reverb step and chunk each, shared by the items of both tables.

    A step of Reverb per unroll costs a quarter of the Python time of a step per agent step.
    """

    def __init__(self, client: reverb.Client, table_names: Sequence[str]):
        """Opens a stream to tables that each get an item of every unroll.

        The queue comes last: while it is full, it holds back what the writer sends after it.
        """
        self._writer = client.trajectory_writer(num_keep_alive_refs=1)
        self._table_names = tuple(table_names)

    def write(self, unroll: stored_unroll.StoredUnroll, should_stop: Callable[[], bool]) -> None:
        """Hands one unroll over, sent in the background; blocks while too many are on their way."""
        self._writer.append(unroll)
        trajectory = tree.map_structure(lambda column: column[-1], self._writer.history)
        for table in self._table_names:
            self._writer.create_item(table, priority=1.0, trajectory=trajectory)
        self.wait(should_stop, pending=_MAX_PENDING)

    def wait(self, should_stop: Callable[[], bool], pending: int = 0) -> None:
        """Blocks until all but `pending` items are in their tables.

        A full queue blocks, so the learner's pace holds the actor.
        """
        while not should_stop():
            try:
                self._writer.flush(block_until_num_items=pending, timeout_ms=500)
                return
            except reverb.DeadlineExceededError:
                continue

    def close(self) -> None:
        """Closes the stream without waiting for a server that may be gone."""
        self._writer.close()

"""Writers to replay that survive restarts of the server."""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import reverb
import tree

from laser_tf.replay import connection, stored_unroll

_TIMEOUT_MS = 500  # between calls of `should_stop`
_RETRY_SECONDS = 1.0  # between the loss of a writer and the start of the next one
_CLOSING_SECONDS = 5.0
_MAX_PENDING = 32  # Items that are being sent; Reverb warns above 50.


class WriterLostError(Exception):
    """Unconfirmed data is lost, and so is the history that items may refer to.

    All methods of a `ResilientWriter` that use its Reverb writer raise this error.
    """


class ResilientWriter:
    """Reverb writer that is recreated after an error, a move or a restart of the server."""

    def __init__(
        self, replay: connection.ReplayConnection, unrolls_kept: int, signature: Any | None = None
    ):
        """Creates a closed writer; items may refer to the last `unrolls_kept` appended unrolls.

        With a signature of the data each unroll is a chunk: no item waits for the next unroll.
        """
        self._replay = replay
        self._unrolls_kept = unrolls_kept
        self._paths = [] if signature is None else [p for p, _ in tree.flatten_with_path(signature)]
        self._writer: reverb.TrajectoryWriter | None = None
        self._server = replay.server  # server of the current writer
        self._closed_at = -_RETRY_SECONDS

    def open(self, should_stop: Callable[[], bool]) -> bool:
        """Opens the writer if needed; returns False if `should_stop` ended the attempt."""
        while self._writer is None:
            if time.monotonic() - self._closed_at < _RETRY_SECONDS:
                time.sleep(_RETRY_SECONDS / 10)
            elif self._replay.wait(should_stop):
                self._server = self._replay.server
                self._writer = self._replay.client.trajectory_writer(self._unrolls_kept)
                for path in self._paths:
                    self._writer.configure(
                        path, num_keep_alive_refs=self._unrolls_kept, max_chunk_length=1
                    )
            if should_stop():
                return self._writer is not None
        return True

    @property
    def history(self) -> Any:
        """Columns of the appended data, which items refer to."""
        return self._writer.history

    def append(self, data: Any) -> None:
        """Appends a step, e.g. an unroll."""
        self._attempt(lambda writer: writer.append(data))

    def create_item(self, table: str, priority: float, trajectory: Any) -> None:
        """Starts to insert an item without waiting."""
        self._attempt(lambda writer: writer.create_item(table, priority, trajectory))

    def flush(self, should_stop: Callable[[], bool], pending: int = 0) -> None:
        """Blocks until all but `pending` items are in their tables."""
        if self._writer is not None:
            self._repeat(
                lambda writer: writer.flush(block_until_num_items=pending, timeout_ms=_TIMEOUT_MS),
                should_stop,
            )

    def end_episode(self, should_stop: Callable[[], bool]) -> None:
        """Blocks until all items are in their tables, and clears the history."""
        self.flush(should_stop)
        self._repeat(lambda writer: writer.end_episode(timeout_ms=_TIMEOUT_MS), should_stop)

    def _repeat(
        self, act: Callable[[reverb.TrajectoryWriter], None], should_stop: Callable[[], bool]
    ) -> None:
        """Repeats a call that times out."""
        while not should_stop():
            try:
                self._attempt(act)
                return
            except reverb.DeadlineExceededError:
                continue

    def _attempt(self, act: Callable[[reverb.TrajectoryWriter], None]) -> None:
        if self._writer is None:
            raise WriterLostError
        # Reverb's own writer waits forever if the server has moved, or if its machine has restarted
        # without closing connections.
        if self._replay.server == self._server:
            with contextlib.suppress(RuntimeError):
                act(self._writer)
                return
        self.close()
        self._closed_at = time.monotonic()
        raise WriterLostError

    def close(self) -> None:
        """Closes the writer without waiting for a server that may be gone."""
        close_all([self])


def close_all(writers: Sequence[ResilientWriter]) -> None:
    """Closes writers in parallel: each may wait a second for its next attempt to connect."""
    closing = [
        threading.Thread(target=writer._writer.close, daemon=True)
        for writer in writers
        if writer._writer is not None
    ]
    for thread in closing:
        thread.start()
    for thread in closing:
        thread.join(_CLOSING_SECONDS)
    for writer in writers:
        writer._writer = None


class UnrollStream:
    """Sends complete unrolls: one Reverb step and chunk each, shared by the items of all tables.

    A Reverb step per unroll costs a quarter of the Python time of a step per agent step. Each
    unroll arrives at least once, even if the server is killed: it is written again if it may not be
    in its tables.
    """

    def __init__(self, replay: connection.ReplayConnection, table_names: Mapping[str, bool]):
        """Creates a stream to tables, see `ReplayScheme.unroll_tables`."""
        self._writer = ResilientWriter(replay, unrolls_kept=1)
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
            except WriterLostError:
                continue

    def wait(self, should_stop: Callable[[], bool]) -> None:
        """Blocks until all items are in their tables, also while the queue is full."""
        try:
            self._writer.flush(should_stop)
        except WriterLostError:
            self.write(self._unrolls, should_stop, max_pending=0)
        self._unrolls = ()

    def close(self) -> None:
        """Closes the stream without waiting for a server that may be gone."""
        self._writer.close()

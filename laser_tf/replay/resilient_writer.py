"""Writer to replay that survives restarts of the server."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import reverb
import tree

from laser_tf.replay import connection

_TIMEOUT_MS = 500  # between calls of `should_stop`
_RETRY_SECONDS = 1.0  # between the loss of a writer and the start of the next one
_CLOSING_SECONDS = 5.0


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
        self._server = "", 0  # address and restarts of the server that the writer was opened for
        self._closed_at = -_RETRY_SECONDS

    def open(self, should_stop: Callable[[], bool]) -> bool:
        """Opens the writer if needed; returns False if `should_stop` ended the attempt."""
        while self._writer is None:
            if time.monotonic() - self._closed_at < _RETRY_SECONDS:
                time.sleep(_RETRY_SECONDS / 10)
            elif self._replay.wait(should_stop):
                self._server = self._replay.address, self._replay.restarts
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
        if self._writer is None:
            return
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
            raise WriterLostError("it has not been opened again")
        # Reverb's own writer waits forever if the server has moved, or if its machine has restarted
        # without closing connections.
        if (self._replay.address, self._replay.restarts) != self._server:
            reason = "the server was moved or restarted"
        else:
            try:
                act(self._writer)
                return
            except RuntimeError as error:
                reason = str(error)
        self.close()
        self._closed_at = time.monotonic()
        raise WriterLostError(reason)

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

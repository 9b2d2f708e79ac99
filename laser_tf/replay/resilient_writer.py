"""Writer to replay that survives restarts of the server."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import reverb
import tree

from laser_tf.replay import connection

_TIMEOUT_MS = 500  # between calls of `should_stop`
_RETRY_SECONDS = 1.0  # between the loss of a writer and the start of the next one
_CLOSING_SECONDS = 5.0


class WriterLostError(Exception):
    """Unconfirmed data is lost, and so is the history that items may refer to."""


class ResilientWriter:
    """Reverb writer that is recreated after an error, a move or a restart of the server."""

    def __init__(
        self, replay: connection.ReplayConnection, unrolls_kept: int, signature: Any | None = None
    ):
        """Creates a closed writer; see `open`.

        Args:
          replay: Connection to the server.
          unrolls_kept: Number of appended unrolls that items may refer to.
          signature: Signature of appended data. It makes each unroll a separate chunk, so that no
            item waits for the next unroll. None: Reverb's default.
        """
        self._replay = replay
        self._unrolls_kept = unrolls_kept
        self._paths = [] if signature is None else [p for p, _ in tree.flatten_with_path(signature)]
        self._writer: reverb.TrajectoryWriter | None = None
        self._server = "", 0  # address and restarts of the server that the writer was opened for
        self._closed_at = -_RETRY_SECONDS

    def open(self, should_stop: Callable[[], bool]) -> bool:
        """Opens the writer if needed; returns False if `should_stop` ended the attempt.

        Raises:
          ValueError: If the server takes other data.
        """
        while self._writer is None:
            if time.monotonic() - self._closed_at < _RETRY_SECONDS:
                time.sleep(_RETRY_SECONDS / 10)
            elif self._replay.wait(should_stop):
                self._start()
            if should_stop():
                return self._writer is not None
        return True

    def _start(self) -> None:
        self._server = self._replay.address, self._replay.restarts
        self._writer = self._replay.client.trajectory_writer(self._unrolls_kept)
        for path in self._paths:
            self._writer.configure(path, num_keep_alive_refs=self._unrolls_kept, max_chunk_length=1)

    @property
    def history(self) -> Any:
        """Columns of the appended data, which items refer to."""
        return self._writer.history

    def append(self, data: Any) -> None:
        """Appends a step, e.g. an unroll.

        Raises:
          WriterLostError: If the writer has ended.
        """
        self._attempt(lambda writer: writer.append(data))

    def create_item(self, table: str, priority: float, trajectory: Any) -> None:
        """Starts inserting an item; returns at once.

        Raises:
          WriterLostError: If the writer has ended.
        """
        self._attempt(lambda writer: writer.create_item(table, priority, trajectory))

    def flush(self, should_stop: Callable[[], bool], pending: int = 0) -> None:
        """Blocks until all but `pending` items are in their tables.

        Raises:
          WriterLostError: If they cannot get there.
        """
        if self._writer is None:
            return
        self._repeat(
            lambda writer: writer.flush(block_until_num_items=pending, timeout_ms=_TIMEOUT_MS),
            should_stop,
        )

    def end_episode(self, should_stop: Callable[[], bool]) -> None:
        """Blocks until all items are in their tables, and clears the history.

        Raises:
          WriterLostError: If they cannot get there.
        """
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
            self._lose("the server was moved or restarted")
        try:
            act(self._writer)
        except RuntimeError as error:
            self._lose(str(error))

    def _lose(self, reason: str) -> NoReturn:
        self.close()
        self._closed_at = time.monotonic()
        raise WriterLostError(reason) from None

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

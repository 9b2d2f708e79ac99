"""Reverb server of a replay in this process, with its checkpoints."""

import contextlib
import os
import pathlib
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import reverb

from laser_tf.replay import (
    connection,
    memory_estimate,
    memory_limit,
    server_address,
    stored_unroll,
    table_checkpoint,
    table_info,
    tables,
)
from laser_tf.replay.schemes import base
from laser_tf.workdir import checkpoint_rotation

_GUARD_TIMEOUT_SECONDS = 5.0  # The thread that guards memory exits sooner unless Reverb blocks it.


class ReplayServer:
    """Reverb server with the tables of a run or a sweep, restored from their checkpoint.

    Reverb listens on every interface without authentication: see `host.private_network`.

    Attributes:
      port: Port that the server listens on.
      address: "host:port" for clients on this machine.
      client: Reverb client of this server.
      is_restored: Whether the tables were restored from a checkpoint.
    """

    def __init__(
        self,
        scheme: base.ReplayScheme,
        signature: stored_unroll.StoredUnroll,
        checkpoint_path: pathlib.Path,
        port: int = 0,
        queues: Sequence[str] = (base.QUEUE,),
        more_tables: Callable[[], list[reverb.Table]] = list,
    ):
        """Starts the server.

        Args:
          scheme: Replay scheme. A restored table keeps the sizes of its checkpoint.
          signature: Signature of an unroll.
          checkpoint_path: Directory of the newest checkpoint. See
            `checkpoint_rotation.CheckpointRotation` for the others.
          port: Port to listen on; 0 selects a free port.
          queues: Names of the learners' queues. The queue of this process is the first.
          more_tables: Creates tables that do not hold experience.

        Raises:
          ValueError: If the port is in use.
          RuntimeError: If Reverb cannot start.
        """
        server_address.check_port(port)
        if scheme.replay_table:
            memory_estimate.warn_if_too_large(scheme, signature)
        self._scheme = scheme
        self._queue = queues[0]
        self._port = port
        self._make_tables = lambda: [*scheme.make_tables(signature, queues), *more_tables()]
        self._checkpoints = checkpoint_rotation.CheckpointRotation(checkpoint_path)
        self._parent = checkpoint_path.parent
        self._parent.mkdir(parents=True, exist_ok=True)
        # Reverb reads `[`, `*`, `?` and `\` in a path as a pattern. This path has none of them.
        descriptor = os.open(self._parent, os.O_RDONLY | os.O_DIRECTORY)
        self._close_parent = weakref.finalize(self, os.close, descriptor)
        self._plain_parent = pathlib.Path(f"/proc/self/fd/{descriptor}")
        self._checkpointing = threading.Lock()  # Two checkpoints at once would share a directory.
        self._stopped = threading.Event()
        self._guard: threading.Thread | None = None
        restored = self._checkpoints.restore(self._restore)
        self.is_restored = restored is not None
        self._server = restored or self._serve(self._make_tables())
        self.port = self._server.port
        self.address = f"localhost:{self.port}"
        self.client = reverb.Client(self.address)

    def _restore(self, path: pathlib.Path) -> reverb.Server:
        """Starts a server from a checkpoint; raises DamagedError if the checkpoint is damaged."""
        checkpoint = table_checkpoint.find(path)
        if not checkpoint:
            raise checkpoint_rotation.DamagedError("it is empty")
        items = table_checkpoint.verify(checkpoint)
        made = self._make_tables()
        signatures = {table.name: table.info.signature for table in made}
        try:
            server = self._serve(made, checkpoint)
        except Exception as error:  # Reverb raises almost any exception.
            server_address.check_port(self._port)  # Another process may have taken the port.
            raise checkpoint_rotation.DamagedError(self._describe(error)) from None
        try:
            _compare(server, items, signatures)
        except Exception as error:
            server.stop()
            if isinstance(error, checkpoint_rotation.DamagedError):
                raise
            raise checkpoint_rotation.DamagedError(self._describe(error)) from None
        return server

    def _serve(
        self, made: list[reverb.Table], checkpoint: pathlib.Path | None = None
    ) -> reverb.Server:
        checkpointer = reverb.checkpointers.DefaultCheckpointer(
            # Empty except during a checkpoint, so that Reverb neither restores nor deletes any.
            str(self._plain_parent / self._checkpoints.unfinished.name),
            fallback_checkpoint_path=checkpoint
            and str(self._plain_parent / checkpoint.relative_to(self._parent)),
        )
        return reverb.Server(made, port=self._port or None, checkpointer=checkpointer)

    def connect(self) -> connection.ReplayConnection:
        """Returns a new connection of this process to the server."""
        return connection.ReplayConnection(self.address, self._scheme, self._queue)

    def tables(self) -> dict[str, table_info.TableInfo]:
        """Returns the state of all tables, by name."""
        return table_info.read(self.client)

    def fill_levels(self) -> dict[str, float]:
        """Returns the items of each table divided by its capacity, by metric name."""
        return {
            f"replay/{name}_fill": table.current_size / table.max_size
            for name, table in self.tables().items()
        }

    def newest_checkpoint(self) -> pathlib.Path | None:
        """Returns the directory that Reverb wrote last; None without a checkpoint."""
        return table_checkpoint.find(self._checkpoints.newest)

    def checkpoint(self) -> None:
        """Saves all tables and keeps the previous checkpoint.

        Raises:
          RuntimeError: If the checkpoint cannot be written. Existing checkpoints are unchanged.
        """
        with self._described_errors(), self._checkpoints.saving() as path:
            table_checkpoint.write_manifest(self._write_checkpoint(path))

    def list_keys(self, table: str) -> list[int]:
        """Returns the keys of a table's items, oldest first.

        Only checkpoints list items, so this writes a checkpoint, reads it and deletes it.

        Raises:
          RuntimeError: If the checkpoint cannot be written.
        """
        with self._described_errors(), self._checkpoints.temporary() as path:
            return table_checkpoint.keys(self._write_checkpoint(path), table)

    @contextlib.contextmanager
    def _described_errors(self) -> Iterator[None]:
        """Allows one checkpoint at a time and converts errors to RuntimeError with one line."""
        with self._checkpointing:
            try:
                yield
            except Exception as error:  # Reverb raises an IndexError for a full disk.
                raise RuntimeError(self._describe(error)) from None

    def _write_checkpoint(self, path: pathlib.Path) -> pathlib.Path:
        self.client.checkpoint()
        checkpoint = table_checkpoint.find(path)
        if not checkpoint:
            raise RuntimeError("Reverb wrote no checkpoint")
        return checkpoint

    def guard_memory(self) -> None:
        """Starts a thread that removes the oldest items if memory runs out, until `stop`."""
        limit = memory_limit.for_machine(self, self._scheme)
        if limit:
            target = memory_limit.keep_enforcing
            self._guard = threading.Thread(
                target=target, args=(limit, self._stopped), name="replay memory", daemon=True
            )
            self._guard.start()

    def _describe(self, error: Exception) -> str:
        text = str(error).replace(str(self._plain_parent), str(self._parent)).strip()
        return text.splitlines()[0] if text else type(error).__name__

    def stop(self) -> None:
        """Stops the server. Clients that wait for the server get an error."""
        self._stopped.set()
        if self._guard:
            self._guard.join(_GUARD_TIMEOUT_SECONDS)
        self._server.stop()
        self._close_parent()


def _compare(server: reverb.Server, items: dict[str, int], signatures: dict[str, Any]) -> None:
    """Raises DamagedError unless a restored server holds the contents of its checkpoint."""
    client = reverb.Client(f"localhost:{server.port}")
    info = client.server_info(timeout=connection.TIMEOUT_SECONDS)
    found = {table: info[table].current_size if table in info else 0 for table in items}
    if found != items:
        raise checkpoint_rotation.DamagedError(f"{items} items were saved, {found} restored")
    for table, signature in signatures.items():
        if difference := tables.difference(info[table].signature, signature):
            raise checkpoint_rotation.DamagedError(f"it is of other unrolls: {difference}")

"""Reverb server of a replay in this process, with its checkpoints."""

import contextlib
import os
import pathlib
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence

import reverb

from laser_tf import errors
from laser_tf.replay import (
    connection,
    lease,
    memory,
    server_address,
    stored_unroll,
    table_checkpoint,
    tables,
)
from laser_tf.replay.schemes import base
from laser_tf.workdir import checkpoint_rotation

_GUARD_TIMEOUT_SECONDS = 5.0  # The thread that guards memory exits sooner unless Reverb blocks it.

MakeContext = Callable[[], contextlib.AbstractContextManager]


class ReplayServer:
    """Reverb server with the tables of a run or a sweep, restored from their checkpoint.

    Reverb listens on every interface without authentication: see `host.private_network`. `address`
    is the "host:port" for clients on this machine.
    """

    def __init__(
        self,
        scheme: base.ReplayScheme,
        signature: stored_unroll.StoredUnroll,
        checkpoint_path: pathlib.Path,
        port: int = 0,
        queues: Sequence[str] = (base.QUEUE,),
        *,
        is_external: bool = False,
        memory_limit_bytes: int | None = None,
        make_saving_context: MakeContext = contextlib.nullcontext,
    ):
        """Starts the server.

        Args:
          scheme: Replay scheme. A restored table keeps its size. Without `in_checkpoints`, existing
            checkpoints are deleted: they would be older than the weights of the next checkpoint.
          signature: Signature of an unroll.
          checkpoint_path: Directory of the newest checkpoint.
          port: Port to listen on; 0 selects a free port.
          queues: Names of the learners' queues. The queue of this process is the first.
          is_external: Whether the server is not part of a run. Runs then lease its queues, and a
            checkpoint of other tables is an error. Otherwise that checkpoint counts as damaged.
          memory_limit_bytes: Limit of `guard_memory` on this process; None for no limit.
          make_saving_context: Returns a context manager to enter while Reverb writes a checkpoint.

        Raises:
          ConfigError: If the port is in use, or the tables of an external server have changed.
          RuntimeError: If Reverb cannot start.
        """
        server_address.check_port(port)
        self._base_bytes = memory.resident_bytes()
        if scheme.replay_table:
            stored_bytes = memory.reverb_unroll_bytes(scheme.stored_signature(signature))
            memory.warn_if_too_large(scheme, stored_bytes, memory_limit_bytes)
        self._scheme = scheme
        self._signature = signature
        self._queues = queues
        self._port = port
        self._is_external = is_external
        self._memory_limit_bytes = memory_limit_bytes
        self._make_saving_context = make_saving_context
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
        restored = None
        if scheme.in_checkpoints:
            restored = self._checkpoints.restore(self._restore)
        else:
            self._checkpoints.delete_all()
        self.is_restored = restored is not None
        self._server = restored or self._serve(self._make_tables())
        self.port = self._server.port
        self.address = f"localhost:{self.port}"
        self.client = reverb.Client(self.address)

    def _make_tables(self) -> list[reverb.Table]:
        leases = map(lease.make_table, self._queues) if self._is_external else ()
        return [*self._scheme.make_tables(self._signature, self._queues), *leases]

    def _restore(self, path: pathlib.Path) -> reverb.Server:
        """Starts a server from a checkpoint; raises DamagedError if the checkpoint is damaged."""
        checkpoint = table_checkpoint.find(path)
        if not checkpoint:
            raise checkpoint_rotation.DamagedError("it is empty")
        items = table_checkpoint.verify(checkpoint)
        made = self._make_tables()
        saved = table_checkpoint.tables(checkpoint)
        if difference := _difference(saved, made, compare_options=self._is_external):
            if not self._is_external:
                raise checkpoint_rotation.DamagedError(difference)
            raise errors.ConfigError(
                f"{path} must hold a replay of the same configuration: {difference}. Use that "
                "configuration, or another --checkpoint_folder."
            )
        try:
            server = self._serve(made, checkpoint)
        except Exception as error:  # Reverb raises almost any exception.
            server_address.check_port(self._port)  # Another process may have taken the port.
            raise checkpoint_rotation.DamagedError(self._describe(error)) from None
        infos = tables.read(reverb.Client(f"localhost:{server.port}"))
        found = {name: info.current_size for name, info in infos.items() if info.current_size}
        if found != items:
            server.stop()
            raise checkpoint_rotation.DamagedError(f"{items} items were saved, {found} restored")
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
        return connection.ReplayConnection(self.address, self._scheme, self._queues[0])

    def tables(self) -> dict[str, tables.TableInfo]:
        """Returns the state of all tables, by name."""
        return tables.read(self.client)

    def fill_levels(self) -> dict[str, float]:
        """Returns the items of each table divided by its capacity, by metric name."""
        return {
            f"replay/{name}_fill": table.current_size / table.max_size
            for name, table in self.tables().items()
        }

    def checkpoint(self) -> None:
        """Saves all tables, unless the scheme excludes them, and keeps the previous checkpoint.

        Raises RuntimeError if that fails. Existing checkpoints are then unchanged.
        """
        if not self._scheme.in_checkpoints:
            return
        with self._described_errors(), self._checkpoints.saving() as path:
            table_checkpoint.write_manifest(self._write_checkpoint(path))

    def list_keys(self, table: str) -> list[int]:
        """Returns the keys of a table's items, oldest first, from a temporary `checkpoint`."""
        with self._described_errors(), self._checkpoints.temporary() as path:
            return table_checkpoint.keys(self._write_checkpoint(path), table)

    @contextlib.contextmanager
    def _described_errors(self) -> Iterator[None]:
        """Allows one checkpoint at a time and converts errors to RuntimeError with one line."""
        with self._checkpointing, self._make_saving_context():
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
        """Starts a thread that removes the oldest items if memory runs out, until `stop`.

        The limit is that of the process's resident memory; the machine's memory always counts.
        """
        if not self._scheme.replay_table:
            return
        table, min_items = self._scheme.replay_table, self._scheme.batch_size
        limit = memory.MemoryLimit(
            self, table, self._memory_limit_bytes, self._base_bytes, min_items
        )
        self._guard = threading.Thread(
            target=limit.keep_enforcing, args=(self._stopped,), name="replay memory", daemon=True
        )
        self._guard.start()

    def _describe(self, error: Exception) -> str:
        return errors.first_line(error).replace(str(self._plain_parent), str(self._parent))

    def stop(self) -> None:
        """Stops the server. Clients that wait for the server get an error."""
        self._stopped.set()
        if self._guard:
            self._guard.join(_GUARD_TIMEOUT_SECONDS)
        self._server.stop()
        self._close_parent()


def _difference(
    saved: Mapping[str, table_checkpoint.Table],
    made: Sequence[reverb.Table],
    *,
    compare_options: bool,
) -> str:
    """Describes the first difference of names and signatures, "" for none.

    With `compare_options` also of sizes and samplers, which a restored table keeps.
    """
    here = {table.name: table.info for table in made}
    if saved.keys() != here.keys():
        return f"it has the tables {', '.join(sorted(saved))}, not {', '.join(sorted(here))}"
    for name, table in saved.items():
        info, encoded = here[name], tables.TableInfo(signature=table.signature)
        if difference := tables.difference(encoded, info.signature):
            return f"table {name!r} has other unrolls: {difference}"
        if compare_options and table.max_size != info.max_size:
            return f"table {name!r} has {table.max_size} items there, {info.max_size} here"
        if compare_options and table.sampler != info.sampler_options:
            return f"table {name!r} has another sampler, e.g. another priority_exponent"
    return ""

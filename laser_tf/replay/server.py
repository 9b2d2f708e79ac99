"""The embedded replay: a Reverb server inside this process."""

import contextlib
import logging
import os
import pathlib
import shutil
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import reverb

from laser_tf.replay import (
    connection,
    memory_estimate,
    memory_limit,
    replay_config,
    saved_tables,
    server_addresses,
    stored_unroll,
    tables,
)

_GUARD_SECONDS = 5.0  # The thread that guards memory ends sooner unless Reverb blocks it.


class EmbeddedReplay(connection.Connection):
    """A Reverb server with the tables of a run or a sweep, restored from their checkpoint.

    Reverb listens on every interface without authentication: see `host.private_network`.
    """

    def __init__(
        self,
        config: replay_config.ReplayConfig,
        signature: stored_unroll.StoredUnroll,
        checkpoint_folder: pathlib.Path,
        port: int = 0,
        queues: Sequence[str] = (replay_config.ONLINE,),
        more_tables: Callable[[], list[reverb.Table]] = list,
    ):
        """Starts the server.

        Args:
          config: of the tables. A restored table keeps the sizes of its checkpoint instead.
          signature: of the items.
          checkpoint_folder: of the newest checkpoint. Beside it lie, with a suffix, the one before
            (`_previous`), the last one that was found damaged (`_damaged`), and one that is being
            written (`_saving`).
          port: to listen on; 0 takes a free one.
          queues: one for each learner; this process's own is the first.
          more_tables: makes those that serve something else than experience.

        Raises:
          ValueError: if the port is in use.
          RuntimeError: if Reverb cannot start.
        """
        server_addresses.check_port(port)
        if config.replay_table != replay_config.NEW_SEQUENCES:  # The learner holds the sequences.
            memory_estimate.warn_if_too_large(config, signature)
        self._folder = checkpoint_folder
        self._previous, self._damaged, self._saving = (
            checkpoint_folder.with_name(f"{checkpoint_folder.name}_{suffix}")
            for suffix in ("previous", "damaged", "saving")
        )
        shutil.rmtree(self._saving, ignore_errors=True)  # of a process that was killed
        checkpoint_folder.mkdir(parents=True, exist_ok=True)
        # Reverb looks for files by pattern, also where a folder's name holds `[`, `*`, `?` or `\`.
        # This is a name of the same folder without them.
        parent = os.open(checkpoint_folder.parent, os.O_RDONLY | os.O_DIRECTORY)
        self._close_parent = weakref.finalize(self, os.close, parent)
        self._plain_parent = f"/proc/self/fd/{parent}"
        self._saving_lock = threading.Lock()  # Two checkpoints at once would share a folder.
        self._guard: threading.Thread | None = None
        self.is_restored = False  # whether a checkpoint was there, and whole
        self._server = self._start(
            lambda: [*tables.make_tables(config, signature, queues), *more_tables()], port or None
        )
        self.port = self._server.port  # where the server listens
        super().__init__(f"localhost:{self.port}", config, queues[0])

    def _start(
        self, make_tables: Callable[[], list[reverb.Table]], port: int | None
    ) -> reverb.Server:
        """Starts from the newest checkpoint that is whole, or with an empty replay."""
        problems = []
        while saved_tables.find(self._folder) or saved_tables.find(self._previous):
            checkpoint = saved_tables.find(self._folder)
            try:
                if not checkpoint:
                    raise saved_tables.DamagedError("it is missing")
                server = self._restore(make_tables(), port, checkpoint)
                self.is_restored = True
                break
            except saved_tables.DamagedError as error:
                problems.append(str(error))
                self._set_aside()
        else:
            server = self._serve(make_tables(), port)
        if problems:
            start = "going on from the one before it" if self.is_restored else "replay starts empty"
            logging.warning(
                "the replay checkpoint in %s cannot be used (%s): %s",
                self._folder, "; the one before it: ".join(problems), start,
            )  # fmt: skip
        return server

    def _restore(
        self, made: list[reverb.Table], port: int | None, checkpoint: pathlib.Path
    ) -> reverb.Server:
        items = saved_tables.verify(checkpoint)
        signatures = {table.name: table.info.signature for table in made}
        try:
            server = self._serve(made, port, checkpoint)
        except Exception as error:  # Reverb raises almost any
            server_addresses.check_port(port or 0)  # somebody may have been quicker
            raise saved_tables.DamagedError(self._describe(error)) from None
        try:
            self._compare(server, items, signatures)
        except Exception as error:
            server.stop()
            if isinstance(error, saved_tables.DamagedError):
                raise
            raise saved_tables.DamagedError(self._describe(error)) from None
        return server

    def _compare(
        self, server: reverb.Server, items: dict[str, int], signatures: dict[str, Any]
    ) -> None:
        """Raises DamagedError unless a restored server holds what its checkpoint lists."""
        info = reverb.Client(f"localhost:{server.port}").server_info(
            timeout=connection.TIMEOUT_SECONDS
        )
        found = {table: info[table].current_size if table in info else 0 for table in items}
        if found != items:
            raise saved_tables.DamagedError(f"of the items {items} came back {found}")
        for table, here in signatures.items():
            if other := tables.difference(info[table].signature, here):
                raise saved_tables.DamagedError(f"it is of other unrolls: {other}")

    def _serve(
        self, made: list[reverb.Table], port: int | None, checkpoint: pathlib.Path | None = None
    ) -> reverb.Server:
        from_ = checkpoint and f"{self._plain_parent}/{checkpoint.parent.name}/{checkpoint.name}"
        checkpointer = reverb.checkpointers.DefaultCheckpointer(
            # Empty but while it saves, so that Reverb has nothing to choose from, or to delete.
            f"{self._plain_parent}/{self._saving.name}",
            fallback_checkpoint_path=from_,
        )
        return reverb.Server(made, port=port, checkpointer=checkpointer)

    def _set_aside(self) -> None:
        """Moves a damaged checkpoint out of the way and the one before it into its place."""
        if saved_tables.find(self._folder):
            shutil.rmtree(self._damaged, ignore_errors=True)  # one is enough to look into
            self._folder.rename(self._damaged)
        if self._previous.exists():
            self._previous.rename(self._folder)  # over an empty folder, or none

    def newest_checkpoint(self) -> pathlib.Path | None:
        """The folder that Reverb wrote last; None where nothing is saved."""
        return saved_tables.find(self._folder)

    def checkpoint(self) -> None:
        """Saves all tables and keeps the checkpoint before, of which there is one.

        Raises:
          RuntimeError: if it cannot be written; the one before stays, and nothing of this one.
        """
        if saved_tables.find(self._folder):
            shutil.rmtree(self._previous, ignore_errors=True)  # else there were three
        with self._saved() as saved:
            saved_tables.write_manifest(saved)
            if saved_tables.find(self._folder):
                self._folder.rename(self._previous)
            self._saving.rename(self._folder)

    def list_keys(self, table: str) -> list[int]:
        """Returns the keys of a table's items, oldest first.

        Only checkpoints list items, so this writes a checkpoint, reads it and deletes it.

        Raises:
          RuntimeError: If the checkpoint cannot be written.
        """
        with self._saved() as saved:
            return saved_tables.keys(saved, table)

    @contextlib.contextmanager
    def _saved(self) -> Iterator[pathlib.Path]:
        """Yields a new checkpoint, which is deleted at the end unless it was renamed.

        Raises:
          RuntimeError: If the checkpoint cannot be written or used.
        """
        with self._saving_lock:
            try:
                self.client.checkpoint()
                saved = saved_tables.find(self._saving)
                if not saved:
                    raise RuntimeError("Reverb wrote no checkpoint")
                yield saved
            except Exception as error:  # Reverb's is an IndexError on a full disk
                raise RuntimeError(self._describe(error)) from None
            finally:
                shutil.rmtree(self._saving, ignore_errors=True)

    def guard_memory(self) -> None:
        """Starts a thread that removes the oldest items whenever memory runs out, until `stop`."""
        limit = memory_limit.for_machine(self, self._config)
        if limit:
            target = memory_limit.keep_enforcing
            self._guard = threading.Thread(
                target=target, args=(limit, self._stopped), name="replay memory", daemon=True
            )
            self._guard.start()

    def _describe(self, error: Exception) -> str:
        text = str(error).replace(self._plain_parent, str(self._folder.parent)).strip()
        return text.splitlines()[0] if text else type(error).__name__

    def stop(self) -> None:
        """Ends the server; clients that wait for it get an error."""
        self._stopped.set()
        if self._guard:
            self._guard.join(_GUARD_SECONDS)
        self._server.stop()
        self._close_parent()

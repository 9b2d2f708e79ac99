"""The embedded replay: a Reverb server inside this process."""

import itertools
import logging
import os
import pathlib
import shutil
import socket
from collections.abc import Callable, Sequence

import reverb

from laser_tf.replay import connection, replay_config, stored_unroll, tables


class EmbeddedReplay(connection.Connection):
    """A Reverb server with the tables of a run or a sweep, restored from their checkpoint.

    Reverb listens on every interface without authentication: see `runtime.private_network`.
    """

    def __init__(
        self,
        config: replay_config.ReplayConfig,
        signature: stored_unroll.StoredUnroll,
        checkpoint_folder: pathlib.Path,
        port: int = 0,
        queues: Sequence[str] = (replay_config.ONLINE,),
    ):
        """Starts the server.

        Args:
          config: of the tables. A restored table keeps the sizes of its checkpoint instead.
          signature: of the items.
          checkpoint_folder: for Reverb alone; it deletes what else lies there.
          port: to listen on; 0 takes a free one.
          queues: one for each learner; this process's own is the first.

        Raises:
          ValueError: if the port is in use.
          RuntimeError: if Reverb cannot start.
        """
        check_port(port)
        self._folder = checkpoint_folder
        self._previous = checkpoint_folder.with_name(checkpoint_folder.name + "_previous")
        self._server = self._start(
            lambda: tables.make_tables(config, signature, queues), port or None
        )
        self.port = self._server.port  # where the server listens
        super().__init__(f"localhost:{self.port}", config, queues[0])

    def _start(
        self, make_tables: Callable[[], list[reverb.Table]], port: int | None
    ) -> reverb.Server:
        """Starts from the newest readable checkpoint, setting damaged ones aside."""
        while True:
            self._folder.mkdir(parents=True, exist_ok=True)
            try:
                return reverb.Server(
                    make_tables(),
                    port=port,
                    checkpointer=reverb.checkpointers.DefaultCheckpointer(str(self._folder)),
                )
            except RuntimeError as error:
                if not any(self._folder.iterdir()):
                    raise
                self._set_aside(error)

    def _set_aside(self, error: RuntimeError) -> None:
        """Moves a damaged checkpoint out of the way and the one before it into its place."""
        aside = _free_name(self._folder.with_name(self._folder.name + "_damaged"))
        self._folder.rename(aside)
        fallback = "an empty replay"
        if self._previous.exists():
            self._previous.rename(self._folder)
            fallback = "the one before it"
        logging.warning(
            "the replay checkpoint in %s is damaged (%s); it is kept as %s, falling back to %s",
            self._folder, error, aside.name, fallback,
        )  # fmt: skip

    def checkpoint(self) -> None:
        """Saves all tables and keeps the checkpoint before.

        Raises:
          RuntimeError: if it cannot be written; the one before stays.
        """
        if any(self._folder.iterdir()):
            # Reverb deletes the older checkpoint in its folder. Hard links keep it without a copy.
            shutil.rmtree(self._previous, ignore_errors=True)
            shutil.copytree(self._folder, self._previous, copy_function=os.link)
        self.client.checkpoint()

    def stop(self) -> None:
        """Ends the server; clients that wait for it get an error."""
        self._server.stop()


def check_port(port: int) -> None:
    """Raises ValueError if nobody can listen on a port of this machine."""
    if not 0 <= port < 65536:
        raise ValueError(f"port is {port}: use a number from 1 to 65535, or 0 for a free one")
    with socket.socket(socket.AF_INET6) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("::", port))
        except OSError as error:
            raise ValueError(
                f"port {port} is in use ({error.strerror}): choose another, or 0 for a free one"
            ) from None


def _free_name(path: pathlib.Path) -> pathlib.Path:
    candidates = (path.with_name(f"{path.name}_{number}") for number in itertools.count(1))
    return next(candidate for candidate in candidates if not candidate.exists())

"""The embedded replay: a Reverb server inside the training process."""

import itertools
import logging
import os
import pathlib
import shutil
import socket

import numpy as np
import reverb

from laser_tf.replay import stored_unroll, tables


class EmbeddedReplay:
    """A Reverb server with a run's tables, restored from its checkpoint where there is one.

    Reverb listens on every interface without authentication: see `runtime.private_network`.
    """

    def __init__(
        self,
        config: tables.Config,
        signature: stored_unroll.StoredUnroll,
        checkpoint_folder: pathlib.Path,
        port: int = 0,
    ):
        """Starts the server.

        Args:
          config: of the tables. A restored table keeps the sizes of its checkpoint instead.
          signature: of the items.
          checkpoint_folder: for Reverb alone; it deletes what else lies there.
          port: to listen on; 0 takes a free one.

        Raises:
          ValueError: if the port is in use.
          RuntimeError: if Reverb cannot start.
        """
        _check_port(port)
        self._config = config
        self._folder = checkpoint_folder
        self._previous = checkpoint_folder.with_name(checkpoint_folder.name + "_previous")
        self._server = self._start(signature, port or None)
        self.address = f"localhost:{self._server.port}"
        self.client = reverb.Client(self.address)

    def _start(self, signature: stored_unroll.StoredUnroll, port: int | None) -> reverb.Server:
        """Starts from the newest readable checkpoint, setting damaged ones aside."""
        while True:
            self._folder.mkdir(parents=True, exist_ok=True)
            try:
                return reverb.Server(
                    tables.make_tables(self._config, signature),
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

    @property
    def port(self) -> int:
        """Where the server listens."""
        return self._server.port

    def size(self) -> int:
        """Items in replay, of `unroll_length` agent steps each; 0 without a replay table."""
        table = self._config.replay_table
        return self.client.server_info()[table].current_size if table else 0

    def fill(self) -> float:
        """Agent steps in replay over its capacity, in [0, 1]."""
        return self.size() * self._config.unroll_length / self._config.capacity

    def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
        """Gives items of replay new priorities; those that are gone by now are passed over.

        Args:
          keys: uint64 [B].
          priorities: float [B], at least 0.
        """
        updates = dict(zip(keys.tolist(), priorities.tolist(), strict=True))
        self.client.mutate_priorities(self._config.replay_table, updates)

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


def _check_port(port: int) -> None:
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

"""Replay of a learner: its connection, and the server or the lease that belong to it."""

import logging
import pathlib
import socket

import numpy as np

from laser_tf import errors
from laser_tf.replay import connection, server, server_address, stored_unroll
from laser_tf.replay import lease as lease_module
from laser_tf.replay.schemes import base


class ReplayClient:
    """Replay of a learner; `connection` leads to the server that the actors write to."""

    def __init__(
        self,
        replay_connection: connection.ReplayConnection,
        replay_server: server.ReplayServer | None = None,
        lease: lease_module.Lease | None = None,
    ):
        self.connection = replay_connection
        self._server = replay_server  # if this process runs the server
        self._lease = lease  # if the server is not part of the run

    def size(self) -> int:
        """Returns the items in replay, of `new_steps_per_item` agent steps each."""
        return self.connection.size()

    def fill_level(self) -> float:
        """Returns the agent steps in replay divided by its capacity, in [0, 1]."""
        return self.connection.scheme.fill_level(self.size())

    def metrics(self) -> dict[str, float]:
        """Returns additional metrics for TensorBoard."""
        return {}

    def update_priorities(self, batch: stored_unroll.Batch, priorities: np.ndarray) -> None:
        """Updates the priorities, float [B], of the replayed entries of a batch of arrays."""
        replayed = ~batch.is_online
        if replayed.any():
            self.connection.update_priorities(batch.key[replayed], priorities[replayed])

    def checkpoint(self) -> None:
        """Saves replay if this process runs the server; raises RuntimeError if that fails."""
        if self._server:
            self._server.checkpoint()

    def stop(self) -> None:
        """Releases the lease and disconnects; stops a server that this process runs."""
        if self._lease:
            self._lease.release()
        self.connection.stop()
        if self._server:
            self._server.stop()


def connect_external(
    scheme: base.ReplayScheme,
    signature: stored_unroll.StoredUnroll,
    workdir: pathlib.Path | None,
    *,
    is_new: bool = False,
) -> ReplayClient:
    """Connects a learner to the server at `scheme.address`, and polls it from now on.

    Leases the queue for the run directory `workdir`; None means that another learner of the run
    leases it. Logs existing experience if the run is new.

    Raises:
      ConfigError: If the server does not answer, has other tables or holds less than the warm-up.
      LeaseTakenError: If the server serves another run.
    """
    replay = connection.ReplayConnection(scheme.address, scheme)
    try:
        replay.check(signature)
        run = f"{socket.gethostname()}:{workdir}"
        lease = lease_module.Lease(replay, run) if workdir else None
    except errors.UserError:
        raise
    except RuntimeError as error:
        message = server_address.unreachable(scheme.address, errors.first_line(error))
        raise errors.ConfigError(message) from None
    if is_new and (items := replay.num_held()):
        logging.warning(
            "Replay at %s holds %s items of an earlier run, from which this run also learns. For "
            "an empty replay, start the server with another --checkpoint_folder",
            scheme.address, f"{items:,}",
        )  # fmt: skip
    replay.start_polling()
    return ReplayClient(replay, lease=lease)

"""Replay of a learner: its connection, and the server or the lease that belong to it."""

import logging
import pathlib
import socket

import numpy as np
import reverb

from laser_tf import errors
from laser_tf.replay import connection, lease, server, server_address, stored_unroll
from laser_tf.replay.schemes import base


class ReplayClient:
    """Replay of a learner on one server.

    Attributes:
      connection: Connection to the server that actors write to.
    """

    def __init__(
        self,
        connected: connection.ReplayConnection,
        served: server.ReplayServer | None = None,
        leased: lease.Lease | None = None,
    ):
        """Uses a connection.

        Args:
          connected: Connection to the server.
          served: The server, if this process runs it.
          leased: Lease of the queue, if the server is not part of the run.
        """
        self.connection = connected
        self._server = served
        self._lease = leased

    def size(self) -> int:
        """Returns the items in replay, of `steps_per_item` agent steps each."""
        return self.connection.size()

    def fill(self) -> float:
        """Returns the agent steps in replay divided by its capacity, in [0, 1]."""
        return self.connection.fill()

    def metrics(self) -> dict[str, float]:
        """Returns further metrics for TensorBoard."""
        return {}

    def take_priorities(self, batch: stored_unroll.Batch, priorities: np.ndarray) -> None:
        """Updates the priorities of the replayed entries of a batch.

        Args:
          batch: Batch of arrays.
          priorities: float [B], at least 0. Priorities of online entries are ignored.
        """
        replayed = ~batch.is_online
        if replayed.any():
            self.connection.update_priorities(batch.key[replayed], priorities[replayed])

    def checkpoint(self) -> None:
        """Saves what this process holds of replay; a server elsewhere saves itself.

        Raises:
          RuntimeError: If the checkpoint cannot be written.
        """
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

    Args:
      scheme: Replay scheme.
      signature: Signature of an unroll.
      workdir: Directory of the run, which leases the queue; None if another learner of the same run
        has leased it.
      is_new: Whether the run has no experience yet: existing experience is logged.

    Raises:
      ConfigError: If the server does not answer, has other tables or holds less than the warm-up.
      LeaseTakenError: If the server serves another run.
    """
    connected = connection.ReplayConnection(scheme.address, scheme)
    try:
        connected.check(signature)
    except errors.UserError:
        raise
    except (RuntimeError, reverb.ReverbError) as error:
        message = server_address.unreachable(scheme.address, errors.first_line(error))
        raise errors.ConfigError(message) from None
    leased = None
    if workdir is not None:
        leased = lease.Lease(connected, f"{socket.gethostname()}:{workdir}")
        leased.acquire()
    if is_new and (items := connected.num_held()):
        logging.warning(
            "Replay at %s holds %s items of an earlier run, which this run learns from as its own; "
            "for an empty replay start the server with another --checkpoint_folder",
            scheme.address, f"{items:,}",
        )  # fmt: skip
    connected.start_polling()
    return ReplayClient(connected, leased=leased)

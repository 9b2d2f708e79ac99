"""Replay on a server that is no part of the run, leased by the run for its learner."""

import logging
import pathlib
import socket

import reverb

from laser_tf import errors
from laser_tf.replay import client, connection, lease, server_address, stored_unroll
from laser_tf.replay.schemes import base


def connect(
    scheme: base.ReplayScheme,
    signature: stored_unroll.StoredUnroll,
    run: str | None,
    queue: str = base.QUEUE,
    *,
    is_new: bool = False,
) -> "ExternalReplay":
    """Connects a learner to the server at `scheme.address`, and polls it from now on.

    Args:
      scheme: Replay scheme.
      signature: Signature of an unroll.
      run: Name of the run that leases the queue, see `lease.Lease`; None if another learner of the
        same run has leased it.
      queue: The learner's queue.
      is_new: Whether the run has no experience yet: existing experience is logged.

    Raises:
      ConfigError: If the server does not answer, has other tables or holds less than the warm-up.
      LeaseTakenError: If the server serves another run.
    """
    server = connection.ReplayConnection(scheme.address, scheme, queue)
    _check(server, scheme, signature)
    keeper = None
    if run is not None:
        # If another run takes the lease over later, users of the server get a LeaseTakenError.
        acquired = lease.Lease(server, run)
        acquired.acquire()
        keeper = lease.LeaseKeeper(server, acquired)
    if is_new and (items := server.num_held()):
        logging.warning(
            "Replay at %s holds %s items of an earlier run, which this run learns from as its own; "
            "for an empty replay start the server with another --checkpoint_folder",
            scheme.address, f"{items:,}",
        )  # fmt: skip
    server.start_polling()
    return ExternalReplay(server, keeper)


def _check(
    server: connection.ReplayConnection,
    scheme: base.ReplayScheme,
    signature: stored_unroll.StoredUnroll,
) -> None:
    """Raises ConfigError unless the server answers, fits the run and can hold the warm-up."""
    try:
        server.check(signature)
    except reverb.ReverbError as error:
        reason = f"not within {connection.TIMEOUT_SECONDS} s"
        raise errors.ConfigError(server_address.unreachable(server.address, reason)) from error
    except errors.UserError:
        raise
    except RuntimeError as error:
        reason = "what answers there is something else"
        raise errors.ConfigError(server_address.unreachable(server.address, reason)) from error
    scheme.check_server(server.max_size)


def name_of_run(workdir: pathlib.Path) -> str:
    """Returns the name of a run on this machine at its replay server."""
    return f"{socket.gethostname()}:{workdir}"


class ExternalReplay(client.LearnerReplay):
    """A learner's view of a server that outlives the run."""

    def __init__(self, connected: connection.ReplayConnection, keeper: lease.LeaseKeeper | None):
        """Uses a connection.

        Args:
          connected: Connection to the server.
          keeper: Keeper of the queue's lease; None if another learner of the run has the lease.
        """
        super().__init__(connected)
        self._keeper = keeper

    def stop(self) -> None:
        """Releases the lease and disconnects; the server keeps running."""
        if self._keeper:
            self._keeper.release()
        super().stop()

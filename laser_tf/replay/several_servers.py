"""Replay on servers of its own: actors write to one of them, the learner draws from all."""

import logging
import pathlib
import socket

import numpy as np
import reverb

from laser_tf import errors
from laser_tf.replay import (
    compatibility,
    connection,
    lease,
    replay_config,
    server_addresses,
    stored_unroll,
)


def open_connection(
    config: replay_config.ReplayConfig,
    signature: stored_unroll.StoredUnroll,
    run: str | None,
    queue: str = replay_config.ONLINE,
    *,
    is_new: bool = False,
) -> "ReplayServers":
    """Connects a learner to the servers of `config.addresses`, each of which is watched.

    Args:
      config: of the tables.
      signature: of an unroll.
      run: whose queue it is to be, alone, see `lease.Lease`; None: another learner of the same run
        has claimed it.
      queue: this learner's.
      is_new: whether the run has no experience of its own yet: what there is, is told of.

    Raises:
      ValueError: if a server does not answer, takes other unrolls, draws otherwise or serves
        another run, or if all together hold less than `warm_up`.
    """
    replay = ReplayServers(config, queue)
    replay.check(signature)
    if run is not None:
        replay.claim(run)
    if is_new:
        replay.tell_of_earlier_runs()
    replay.watch()
    return replay


def open_for_writing(
    config: replay_config.ReplayConfig, actor: int, queue: str = replay_config.ONLINE
) -> connection.ReplayConnection:
    """The server of `config.addresses` that an actor writes to: they take turns.

    Args:
      config: of the tables.
      actor: its index.
      queue: the learner's.
    """
    return connection.ReplayConnection(config.servers[actor % len(config.servers)], config, queue)


def name_of_run(workdir: pathlib.Path) -> str:
    """What a run is known by at its servers, whose learner works in a folder on this machine."""
    return f"{socket.gethostname()}:{workdir}"


class ReplayServers:
    """A `client.ReplayClient` of one or several servers, each with its own connection.

    A server that is silent or was restarted concerns its own connection and holds up no other.

    Attributes:
      queue: this learner's, on all of them.
    """

    def __init__(self, config: replay_config.ReplayConfig, queue: str):
        """Connects; nothing is sent yet."""
        self.queue = queue
        self._config = config
        self._servers = tuple(
            connection.ReplayConnection(address, config, queue) for address in config.servers
        )
        self._claims: list[lease.LeaseKeeper] = []

    @property
    def servers(self) -> tuple[connection.ReplayConnection, ...]:
        """All of them."""
        return self._servers

    def check(self, signature: stored_unroll.StoredUnroll) -> None:
        """Raises ValueError unless all servers answer, take such unrolls and hold the warm-up."""
        for server in self._servers:
            try:
                server.check(signature)
            except reverb.ReverbError as error:
                reason = f"not within {connection.TIMEOUT_SECONDS} s"
                raise errors.ConfigError(
                    server_addresses.unreachable(server.address, reason)
                ) from error
            except errors.UserError:
                raise
            except RuntimeError as error:
                reason = "what answers there is something else"
                raise errors.ConfigError(
                    server_addresses.unreachable(server.address, reason)
                ) from error
        compatibility.check_capacity(self._config, sum(server.max_size for server in self._servers))

    def tell_of_earlier_runs(self) -> None:
        """Warns of what a run that begins would not expect to learn from."""
        if items := sum(server.num_held() for server in self._servers):
            logging.warning(
                "replay at %s holds %s items of an earlier run, which are learned from as this "
                "run's own; for an empty replay start the server with another --checkpoint_folder",
                self._config.addresses, f"{items:,}",
            )  # fmt: skip

    def watch(self) -> None:
        """Looks at all servers every few seconds from now on, until `stop`."""
        for server in self._servers:
            server.start_polling()

    def claim(self, run: str) -> None:
        """Claims the queue on all servers, and keeps it until `stop`.

        A server's claim is kept from when it is taken: the next one may take longer than a claim
        that is not renewed stands.

        Where another run takes one over, being sure that this one is dead, whoever reads from that
        server gets a `lease.LeaseTakenError`.

        Args:
          run: see `lease.Lease`.

        Raises:
          LeaseTakenError: if another run's learner has one of them.
        """
        for server in self._servers:
            one = lease.Lease(server, run, lease.HEARTBEAT_SECONDS, lease.STALE_SECONDS)
            try:
                one.acquire()
            except ValueError:
                self._release()
                raise
            self._claims.append(lease.LeaseKeeper(server, one))

    def _release(self) -> None:
        claims, self._claims = self._claims, []
        for kept in claims:
            kept.release()

    def size(self) -> int:
        """Items in the replay of all servers."""
        return sum(server.size() for server in self._servers)

    def fill(self) -> float:
        """Agent steps in replay over the capacity of all servers, in [0, 1]."""
        return sum(server.fill() for server in self._servers) / len(self._servers)

    def metrics(self) -> dict[str, float]:
        """None: see `client.ReplayClient`."""
        return {}

    def take_priorities(self, batch: stored_unroll.Batch, priorities: np.ndarray) -> None:
        """See `client.ReplayClient`; each server gets those of the items it gave."""
        replayed = ~batch.is_online
        for index, server in enumerate(self._servers):
            chosen = replayed if len(self._servers) == 1 else replayed & (batch.server == index)
            if chosen.any():
                server.update_priorities(batch.key[chosen], priorities[chosen])

    def checkpoint(self) -> None:
        """Does nothing: servers of their own save themselves."""

    def stop(self) -> None:
        """Leaves the servers, which go on, to the next run."""
        self._release()
        for server in self._servers:
            server.stop()

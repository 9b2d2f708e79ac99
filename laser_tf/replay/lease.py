"""Lease of a learner's queue: at most one run learns from a queue at a time.

A table next to the queue holds the name of the run. The run's learner renews the lease by writing
the name again, and releases it by writing an empty name. Another run may take over a lease that is
not renewed any more.
"""

import contextlib
import threading
import time

import numpy as np
import reverb
import tensorflow as tf

from laser_tf import errors
from laser_tf.replay import connection, table_info

HEARTBEAT_SECONDS = 3.0
STALE_SECONDS = 4 * HEARTBEAT_SECONDS
PREFIX = "lease_"
_RELEASE_TIMEOUT_SECONDS = 5.0  # for a renewal in progress


class LeaseTakenError(errors.ConfigError):
    """Another run learns from the queue. The message names the run."""


def make_table(queue: str) -> reverb.Table:
    """Creates the table that holds the lease of a queue."""
    return reverb.Table(
        name=f"{PREFIX}{queue}",
        sampler=reverb.selectors.Fifo(),
        remover=reverb.selectors.Fifo(),
        max_size=1,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature=tf.TensorSpec([None], tf.uint8),
    )


class Lease:
    """Lease of a run on its queue at one server."""

    def __init__(
        self,
        server: connection.ReplayConnection,
        run: str,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        stale_seconds: float = STALE_SECONDS,
    ):
        self._server = server  # rejected if another run takes over the lease
        self._run = run  # name, e.g. host and run directory, which a resumed run keeps
        self._heartbeat_seconds = heartbeat_seconds
        self._stale_seconds = stale_seconds  # without a renewal, before another run may take over
        self._table = f"{PREFIX}{server.queue}"
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="replay lease", daemon=True)

    def acquire(self) -> None:
        """Acquires the lease and renews it in a thread until `release`.

        Raises:
          LeaseTakenError: If another run renews the lease.
          ConfigError: If the server was not started by `launch.replay_server`.
        """
        self._renew()
        self._thread.start()

    def _renew(self) -> None:
        """Writes the run's name; raises LeaseTakenError if another run renews the lease."""
        holder, renewals = self._read()
        deadline = time.monotonic() + self._stale_seconds
        while holder not in ("", self._run) and time.monotonic() < deadline:
            time.sleep(self._heartbeat_seconds / 6)
            before = renewals
            holder, renewals = self._read()
            if renewals > before and holder not in ("", self._run):
                raise LeaseTakenError(
                    f"the replay server at {self._server.address} already serves another run "
                    f"({holder}). Stop that run, or start another replay server."
                )
        self._write(self._run)

    def _keep(self) -> None:
        while not self._released.wait(self._heartbeat_seconds):
            try:
                if self._server.is_answering:
                    self._renew()
            except LeaseTakenError as error:
                self._server.reject(error)
                return
            except (RuntimeError, reverb.ReverbError):
                continue  # The connection reports a server that is gone.
        with contextlib.suppress(RuntimeError, reverb.ReverbError):
            if self._server.is_answering and self._read()[0] == self._run:
                self._write("")

    def release(self) -> None:
        """Releases the lease at once, if this run holds it."""
        self._released.set()
        self._thread.join(_RELEASE_TIMEOUT_SECONDS)  # Reverb blocks if the server is gone.

    def _read(self) -> tuple[str, int]:
        """Returns the run that holds the lease, "" for none, and the number of writes so far."""
        client = self._server.client
        infos = table_info.read(client, connection.TIMEOUT_SECONDS)
        if self._table not in infos:
            raise errors.ConfigError(
                f"the replay server at {self._server.address} must have a table {self._table!r}, "
                f"got {', '.join(map(repr, sorted(infos)))}. Start it by launch.replay_server."
            )
        info = infos[self._table]
        if not info.current_size:
            return "", 0
        (sample,) = client.sample(self._table, emit_timesteps=False)
        holder = sample.data[0].tobytes().decode(errors="replace").rstrip("\0")
        return holder, table_info.num_inserts(info)

    def _write(self, run: str) -> None:
        name = np.frombuffer(run.encode() or b"\0", np.uint8)
        self._server.client.insert(name, {self._table: 1.0})

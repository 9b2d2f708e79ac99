"""Lease of a learner's queue: at most one run learns from a queue at a time.

A table next to the queue holds the name of the run. The run's learner renews the lease by writing
the name again. Another run may take over a lease that is not renewed any more.
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
_NAME_BYTES = 256
_RELEASE_TIMEOUT_SECONDS = 5.0  # for a renewal in progress


class LeaseTakenError(errors.ConfigError):
    """Another run learns from the queue. The message names the run."""


def make_table(queue: str) -> reverb.Table:
    """Creates the table that holds the lease of a queue."""
    return reverb.Table(
        name=table_name(queue),
        sampler=reverb.selectors.Fifo(),
        remover=reverb.selectors.Fifo(),
        max_size=1,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature=tf.TensorSpec([_NAME_BYTES], tf.uint8),
    )


def table_name(queue: str) -> str:
    """Returns the name of the lease's table of a queue."""
    return f"{PREFIX}{queue}"


def _shorten(run: str) -> str:
    """Shortens a run's name to what the table holds: its start and its end."""
    name, half = run.encode(), _NAME_BYTES // 2
    if len(name) > _NAME_BYTES:
        name = name[: half - 3] + b"..." + name[-half:]
    return name.decode(errors="ignore")  # A character may have been cut.


class Lease:
    """Lease of a run on its queue at one server."""

    def __init__(
        self,
        server: connection.ReplayConnection,
        run: str,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        stale_seconds: float = STALE_SECONDS,
    ):
        """Acquires nothing.

        Args:
          server: Connection to the server of the queue.
          run: Name of the run, e.g. host and run directory. A resumed run has the same name.
          heartbeat_seconds: Period of renewals by `LeaseKeeper`.
          stale_seconds: Time without a renewal after which a lease may be taken over.
        """
        self.heartbeat_seconds = heartbeat_seconds
        self._stale_seconds = stale_seconds
        self._client = server.client
        self._address = server.address
        self._table = table_name(server.queue)
        self._run = _shorten(run)  # as the table returns it

    def acquire(self) -> None:
        """Acquires the lease, unless another run renews it.

        Raises:
          LeaseTakenError: If another run renews the lease.
          ConfigError: If the server was not started by `launch.replay_server`.
        """
        while (holder := self._holder()) not in ("", self._run):
            if self._is_stale(holder):
                break
        self._write()

    def _is_stale(self, holder: str) -> bool:
        """Returns whether a run does not renew its lease; False if the lease was released.

        Raises:
          LeaseTakenError: If the run renews its lease.
        """
        before = self._num_renewals()
        deadline = time.monotonic() + self._stale_seconds
        while time.monotonic() < deadline:
            time.sleep(self.heartbeat_seconds / 6)
            renewals = self._num_renewals()
            if renewals < before:  # The lease was released or the server was restarted.
                return False
            if renewals > before:
                raise LeaseTakenError(
                    f"the replay server at {self._address} already serves another run ({holder}). "
                    "Stop that run, or start another replay server."
                )
        return True

    def _write(self) -> None:
        name = self._run.encode().ljust(_NAME_BYTES, b"\0")
        self._client.insert(np.frombuffer(name, np.uint8), {self._table: 1.0})

    def renew(self) -> None:
        """Renews the lease, or acquires it if another run has taken it over.

        Raises:
          LeaseTakenError: If another run renews the lease.
        """
        if self._holder() in (self._run, ""):
            self._write()
        else:
            self.acquire()

    def release(self) -> None:
        """Releases the lease at once, if this run holds it."""
        with contextlib.suppress(RuntimeError, reverb.ReverbError):  # The server may be gone.
            if self._holder() == self._run:
                self._client.reset(self._table)

    def _holder(self) -> str:
        """Returns the run that holds the lease; "" for none."""
        if not self._info().current_size:
            return ""
        # In a thread: if the lease is released in the meantime, Reverb blocks until the next one.
        names: list[str] = []
        reading = threading.Thread(target=self._read, args=(names,), daemon=True)
        reading.start()
        reading.join(connection.TIMEOUT_SECONDS)
        return names[0] if names else ""

    def _read(self, names: list[str]) -> None:
        with contextlib.suppress(RuntimeError, reverb.ReverbError):  # The server may be gone.
            (sample,) = self._client.sample(self._table, num_samples=1, emit_timesteps=False)
            names.append(bytes(sample.data[0]).rstrip(b"\0").decode(errors="replace"))

    def _num_renewals(self) -> int:
        return self._info().rate_limiter_info.insert_stats.completed

    def _info(self) -> table_info.TableInfo:
        info = table_info.read(self._client, connection.TIMEOUT_SECONDS)
        if self._table not in info:
            raise errors.ConfigError(
                f"the replay server at {self._address} must have a table {self._table!r}, got "
                f"{', '.join(map(repr, sorted(info)))}. Start it by launch.replay_server."
            )
        return info[self._table]


class LeaseKeeper:
    """Thread that renews a lease until it is released or another run has taken it over."""

    def __init__(self, server: connection.ReplayConnection, acquired: Lease):
        """Starts the thread.

        Args:
          server: Connection to the server. It is rejected if another run takes the lease over.
          acquired: Lease that was acquired.
        """
        self._server = server
        self._lease = acquired
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="replay lease", daemon=True)
        self._thread.start()

    def _renew(self) -> None:
        while not self._stopped.wait(self._lease.heartbeat_seconds):
            if not self._server.is_answering:
                continue
            try:
                self._lease.renew()
            except LeaseTakenError as error:
                self._server.reject(error)
                return
            except (RuntimeError, ValueError, reverb.ReverbError):
                continue  # The connection reports a server that is gone.

    def release(self) -> None:
        """Stops the thread and releases the lease."""
        self._stopped.set()
        self._thread.join(_RELEASE_TIMEOUT_SECONDS)
        if not self._thread.is_alive() and self._server.is_answering:
            self._lease.release()

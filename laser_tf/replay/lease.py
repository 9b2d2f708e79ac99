"""The lease of a run on its queue at a replay server that is not part of the run."""

import contextlib
import threading
import time

import numpy as np
import reverb
import tensorflow as tf

from laser_tf import errors
from laser_tf.replay import connection, tables

_PREFIX = "lease_"  # of the names of tables
_HEARTBEAT_SECONDS = 3.0
_STALE_SECONDS = 4 * _HEARTBEAT_SECONDS
_RELEASE_TIMEOUT_SECONDS = 5.0  # max wait for a renewal in progress


def make_table(queue: str) -> reverb.Table:
    """Creates the table that holds the lease of a queue."""
    return reverb.Table(
        name=f"{_PREFIX}{queue}",
        sampler=reverb.selectors.Fifo(),
        remover=reverb.selectors.Fifo(),
        max_size=1,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature=tf.TensorSpec([None], tf.uint8),
    )


class LeaseTakenError(errors.ConfigError):
    """Another run learns from the queue. The message names the run."""


class Lease:
    """Lease of a run on its queue at one server: at most one run learns from a queue at a time.

    A table next to the queue holds the name of the run. The run's learner renews the lease by
    writing the name again, and releases it by writing an empty name. Another run may take over a
    lease that is not renewed any more.
    """

    def __init__(
        self,
        replay: connection.ReplayConnection,
        run: str,
        heartbeat_seconds: float = _HEARTBEAT_SECONDS,
        stale_seconds: float = _STALE_SECONDS,
    ):
        """Acquires the lease and renews it in a thread until `release`.

        `run` is a name that a resumed run keeps, e.g. host and run directory. Another run may take
        over `stale_seconds` after the last renewal; the connection then rejects the server.

        Raises:
          LeaseTakenError: If another run renews the lease.
          ConfigError: If the server was not started by `launch.replay_server`.
        """
        self._replay = replay
        self._run = run
        self._heartbeat_seconds = heartbeat_seconds
        self._stale_seconds = stale_seconds
        self._table = f"{_PREFIX}{replay.queue}"
        self._released = threading.Event()
        self._renew()
        self._thread = threading.Thread(target=self._keep, name="replay lease", daemon=True)
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
                    f"the replay server at {self._replay.address} already serves another run "
                    f"({holder}). Stop that run, or start another replay server."
                )
        self._write(self._run)

    def _keep(self) -> None:
        while not self._released.wait(self._heartbeat_seconds):
            try:
                if self._replay.is_answering:
                    self._renew()
            except LeaseTakenError as error:
                self._replay.rejection = error
                return
            except (RuntimeError, reverb.ReverbError):
                continue  # The connection reports a server that is gone.
        with contextlib.suppress(RuntimeError, reverb.ReverbError):
            if self._replay.is_answering and self._read()[0] == self._run:
                self._write("")

    def release(self) -> None:
        """Releases the lease at once, if this run holds it."""
        self._released.set()
        self._thread.join(_RELEASE_TIMEOUT_SECONDS)  # Reverb blocks if the server is gone.

    def _read(self) -> tuple[str, int]:
        """Returns the run that holds the lease, "" for none, and the number of writes so far."""
        client = self._replay.client
        infos = tables.read(client, connection.TIMEOUT_SECONDS)
        if self._table not in infos:
            raise errors.ConfigError(
                f"the replay server at {self._replay.address} must have a table {self._table!r}, "
                f"got {', '.join(map(repr, sorted(infos)))}. Start it by launch.replay_server."
            )
        info = infos[self._table]
        if not info.current_size:
            return "", 0
        (sample,) = client.sample(self._table, emit_timesteps=False)
        holder = sample.data[0].tobytes().decode(errors="replace").rstrip("\0")
        return holder, tables.num_inserts(info)

    def _write(self, run: str) -> None:
        name = np.frombuffer(run.encode() or b"\0", np.uint8)
        self._replay.client.insert(name, {self._table: 1.0})

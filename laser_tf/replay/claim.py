"""One run at a time learns from a queue: what it leaves on the server says that it is there.

An item of a table beside the queue names the run. Its learner writes it again and again; one that
is not written any more is a dead learner's and may be taken over.
"""

import contextlib
import threading
import time

import numpy as np
import reverb
import tensorflow as tf

from laser_tf import errors
from laser_tf.replay import connection, table_info

BEAT_SECONDS = 3.0
STALE_SECONDS = 4 * BEAT_SECONDS
PREFIX = "claim_"
_NAME_BYTES = 256


class ClaimedError(errors.ConfigError):
    """Another run learns from the queue; the message says which."""


def make_table(queue: str) -> reverb.Table:
    """The table that holds the claim on a queue."""
    return reverb.Table(
        name=table_of(queue),
        sampler=reverb.selectors.Fifo(),
        remover=reverb.selectors.Fifo(),
        max_size=1,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature=tf.TensorSpec([_NAME_BYTES], tf.uint8),
    )


def table_of(queue: str) -> str:
    """The name of the table beside a queue."""
    return f"{PREFIX}{queue}"


def _shortened(run: str) -> str:
    """A run's name as far as the table holds it: its host and the end of its folder tell it."""
    name, half = run.encode(), _NAME_BYTES // 2
    if len(name) > _NAME_BYTES:
        name = name[: half - 3] + b"..." + name[-half:]
    return name.decode(errors="ignore")  # a character may have been cut


class Claim:
    """A run's claim on its queue at one server."""

    def __init__(self, server: connection.Connection, run: str):
        """Claims nothing yet.

        Args:
          server: with the queue.
          run: its name, e.g. host and folder; a run that goes on has the same one.
        """
        self._client = server.client
        self._address = server.address
        self._table = table_of(server.queue)
        self._run = _shortened(run)  # as the table gives it back

    def take(self) -> None:
        """Claims the queue, once it is sure that no other run's learner lives.

        Raises:
          ClaimedError: if one does.
          ValueError: if the server is no `launch.replay_server`.
        """
        while (other := self._holder()) not in ("", self._run):
            if self._is_silent(other):
                break
        self.renew()

    def _is_silent(self, other: str) -> bool:
        """Whether a run does not renew its claim; False where the claim itself has gone.

        Raises:
          ClaimedError: if it does.
        """
        before = self._beats()
        deadline = time.monotonic() + STALE_SECONDS
        while time.monotonic() < deadline:
            time.sleep(BEAT_SECONDS / 6)
            beats = self._beats()
            if beats < before:  # it was released, or the server was started again
                return False
            if beats > before:
                raise ClaimedError(
                    f"the replay server at {self._address} serves another run ({other}): end that "
                    "one, or start a replay server for this one"
                )
        return True

    def renew(self) -> None:
        """Writes the claim again."""
        name = self._run.encode().ljust(_NAME_BYTES, b"\0")
        self._client.insert(np.frombuffer(name, np.uint8), {self._table: 1.0})

    def keep(self) -> None:
        """Renews the claim, and looks whether another run has taken it meanwhile.

        Raises:
          ClaimedError: if one has, and lives.
        """
        if self._holder() in (self._run, ""):
            self.renew()
        else:
            self.take()

    def release(self) -> None:
        """Lets others have the queue at once."""
        with contextlib.suppress(RuntimeError, reverb.ReverbError):  # a server that has gone
            if self._holder() == self._run:
                self._client.reset(self._table)

    def _holder(self) -> str:
        """The run that holds the queue; "" for none."""
        if not self._info().current_size:
            return ""
        # By a thread that may be left: of a claim that is released meanwhile it waits for the next.
        read: list[str] = []
        reading = threading.Thread(target=self._read, args=(read,), daemon=True)
        reading.start()
        reading.join(connection.TIMEOUT_SECONDS)
        return read[0] if read else ""

    def _read(self, read: list[str]) -> None:
        with contextlib.suppress(RuntimeError, reverb.ReverbError):  # a server that has gone
            (sample,) = self._client.sample(self._table, num_samples=1, emit_timesteps=False)
            read.append(bytes(sample.data[0]).rstrip(b"\0").decode(errors="replace"))

    def _beats(self) -> int:
        return self._info().rate_limiter_info.insert_stats.completed

    def _info(self) -> table_info.TableInfo:
        info = table_info.read(self._client, connection.TIMEOUT_SECONDS)
        if self._table not in info:
            raise errors.ConfigError(
                f"the replay server at {self._address} has no table {self._table!r}: it was not "
                "started by launch.replay_server"
            )
        return info[self._table]

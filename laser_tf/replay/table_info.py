"""State of a replay server's tables, and restarts detected from successive states.

`reverb.Client.server_info` decodes the signature of each table, and each decoding creates classes
that stay alive: a process that polled every two seconds grew by 4 MiB a minute. Signatures
therefore stay encoded here until they are compared.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

import reverb
from reverb.cc import schema_pb2

TableInfo: TypeAlias = schema_pb2.TableInfo

_SILENCE_WARNING_SECONDS = 5.0  # without an answer, before a warning
_AGE_TOLERANCE_SECONDS = 4.0  # by which a server's reported age may lag behind


def read(client: reverb.Client, timeout_seconds: int = 0) -> dict[str, TableInfo]:
    """Asks a server for its tables; returns them by name.

    Args:
      client: Client of the server.
      timeout_seconds: Timeout; 0 for none.

    Raises:
      DeadlineExceededError: If the server does not answer in time.
      RuntimeError: If the server answers with an error.
    """
    try:
        # Reverb's public method is this call and the decoding.
        encoded = client._client.ServerInfo(timeout_seconds)
    except RuntimeError as error:
        if "Deadline Exceeded" in str(error):
            raise reverb.DeadlineExceededError(str(error)) from None
        raise
    infos = [TableInfo.FromString(table) for table in encoded]
    return {info.name: info for info in infos}


def signature(info: TableInfo) -> reverb.reverb_types.SpecNest:
    """Returns the decoded signature of a table."""
    return reverb.reverb_types.TableInfo.from_serialized_proto(info.SerializeToString()).signature


def num_inserts(info: TableInfo) -> int:
    """Returns the number of items that were inserted since the server's start."""
    return info.rate_limiter_info.insert_stats.completed


class Liveness:
    """Records whether a replay server answers, and whether it was restarted.

    Reverb's clients do not report restarts: they continue with an empty server without an error.
    Counts of inserts may be restored from a checkpoint, so that only its age reveals a new server.

    Attributes:
      is_answering: Whether the server answered the last poll.
      restarts: Number of times that another server was found in place of the last one.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        """Assumes a server that answers.

        Args:
          clock: Returns the time in seconds.
        """
        self._clock = clock
        self.is_answering = True
        self.restarts = 0
        self._last: tuple[float, float] | None = None  # time and server's age of the last answer
        self._silent_since: float | None = None
        self._is_silence_logged = False

    def record_silence(self, address: str, seconds: float) -> None:
        """Records a poll without an answer; logs a warning once if the silence lasts.

        Args:
          address: Address of the server.
          seconds: Duration of the poll.
        """
        now = self._clock()
        self.is_answering = False
        if self._silent_since is None:
            self._silent_since = now - seconds
        silence = now - self._silent_since
        if silence >= _SILENCE_WARNING_SECONDS and not self._is_silence_logged:
            self._is_silence_logged = True
            logging.warning(
                "Replay server at %s has not answered for %.0f s: waiting for it", address, silence
            )

    def record_move(self) -> None:
        """Records a new address: the next answer comes from another server."""
        if self._last:
            self._last = self._clock(), math.inf

    def record_answer(self, infos: Mapping[str, TableInfo], address: str) -> bool:
        """Records an answer; returns whether another server gave it than the last answer.

        Args:
          infos: The server's tables, by name.
          address: Address of the server.
        """
        now, age = self._clock(), _age(infos)
        time_before, age_before = self._last or (now, 0.0)
        self._last = now, age
        expected = age_before + now - time_before - _AGE_TOLERANCE_SECONDS
        is_restarted = age < max(age_before, expected)
        self.restarts += is_restarted
        if self._is_silence_logged and not is_restarted:
            silence = now - self._silent_since
            logging.info("Replay server at %s answered after %.0f s", address, silence)
        self.is_answering, self._silent_since, self._is_silence_logged = True, None, False
        return is_restarted


def _age(infos: Mapping[str, TableInfo]) -> float:
    """Returns the seconds since a server's start: the working and waiting time of its threads."""
    return max(
        sum(value for _, value in info.table_worker_time.ListFields()) / 1000
        for info in infos.values()
    )

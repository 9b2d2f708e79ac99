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

_SILENCE_WARNING_SECONDS = 8.0  # since the last answer
_AGE_TOLERANCE_SECONDS = 4.0  # by which a server's reported age may lag behind


def read(client: reverb.Client, timeout_seconds: int = 0) -> dict[str, TableInfo]:
    """Requests the tables of a server; returns name -> table. A timeout of 0 means no timeout.

    Raises:
      RuntimeError: If the server does not answer in time, or answers with an error.
    """
    # Reverb's public method is this call and the decoding.
    infos = map(TableInfo.FromString, client._client.ServerInfo(timeout_seconds))
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
        self._clock = clock
        self.is_answering = True
        self.restarts = 0
        self._answered_at = clock()
        self._age = -math.inf  # of the server at its last answer; -inf before the first answer
        self._is_silence_logged = False

    def record_silence(self, address: str) -> None:
        """Records a poll without an answer; logs a warning once if the silence lasts."""
        self.is_answering = False
        silence = self._clock() - self._answered_at
        if silence >= _SILENCE_WARNING_SECONDS and not self._is_silence_logged:
            self._is_silence_logged = True
            logging.warning(
                "Replay server at %s has not answered for %.0f s: waiting for it", address, silence
            )

    def record_move(self) -> None:
        """Records a new address: the next answer comes from another server."""
        if self._age >= 0:
            self._age = math.inf

    def record_answer(self, infos: Mapping[str, TableInfo], address: str) -> bool:
        """Records an answer; returns whether another server gave it than the last answer."""
        age, silence = _age(infos), self._clock() - self._answered_at
        is_restarted = age < max(self._age, self._age + silence - _AGE_TOLERANCE_SECONDS)
        self.restarts += is_restarted
        if self._is_silence_logged and not is_restarted:
            logging.info("Replay server at %s answered after %.0f s", address, silence)
        self._age, self._answered_at = age, self._answered_at + silence
        self.is_answering, self._is_silence_logged = True, False
        return is_restarted


def _age(infos: Mapping[str, TableInfo]) -> float:
    """Returns the seconds since a server's start: the working and waiting time of its threads."""
    return max(
        sum(value for _, value in info.table_worker_time.ListFields()) / 1000
        for info in infos.values()
    )

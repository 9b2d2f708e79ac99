"""Liveness of a replay server: silence and restarts, detected from successive polls."""

import logging
import time
from collections.abc import Callable, Mapping

from laser_tf.replay import table_info

_SILENCE_WARNING_SECONDS = 5.0  # without an answer, before a warning
_AGE_TOLERANCE_SECONDS = 4.0  # by which a server's reported age may lag behind


class Liveness:
    """Records whether a replay server answers, and whether it was restarted.

    Reverb's clients do not report restarts: they continue with an empty server without an error.

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
        self._has_moved = False
        self._last: tuple[float, float, int] | None = None  # time, server's age and inserts
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
            self._silent_since, self._is_silence_logged = now - seconds, False
        silence = now - self._silent_since
        if silence >= _SILENCE_WARNING_SECONDS and not self._is_silence_logged:
            self._is_silence_logged = True
            logging.warning(
                "Replay server at %s has not answered for %.0f s: waiting for it", address, silence
            )

    def record_move(self) -> None:
        """Records a new address: the next answer comes from another server."""
        self._has_moved = True

    def record_answer(self, info: Mapping[str, table_info.TableInfo], address: str) -> bool:
        """Records an answer; returns whether another server gave it than the last answer.

        Args:
          info: The server's tables, by name.
          address: Address of the server.
        """
        is_restarted = self._is_other(info)
        self.restarts += is_restarted
        if self._silent_since is not None and self._is_silence_logged and not is_restarted:
            seconds = self._clock() - self._silent_since
            logging.info("Replay server at %s answered after %.0f s", address, seconds)
        self._silent_since, self._is_silence_logged = None, False
        self.is_answering = True
        return is_restarted

    def _is_other(self, info: Mapping[str, table_info.TableInfo]) -> bool:
        now, age = self._clock(), _age(info)
        inserts = sum(table.rate_limiter_info.insert_stats.completed for table in info.values())
        last, self._last = self._last, (now, age, inserts)
        has_moved, self._has_moved = self._has_moved, False
        if last is None:
            return False
        time_before, age_before, inserts_before = last
        expected = age_before + now - time_before
        is_younger = age < max(age_before, expected - _AGE_TOLERANCE_SECONDS)
        return has_moved or is_younger or inserts < inserts_before


def _age(info: Mapping[str, table_info.TableInfo]) -> float:
    """Returns the seconds since a server's start: the working and waiting time of its threads."""
    return max(
        sum(value for _, value in table.table_worker_time.ListFields()) / 1000
        for table in info.values()
    )

"""The elements of a dataset on a server that may go away and come back."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from laser_tf import array_function, errors
from laser_tf.replay import connection

_RETRY_SECONDS = 1.0  # From an error to the next attempt.
_STUCK_SECONDS = 10.0  # Without an element from a server that was restarted.
_MAX_ERRORS = 5  # In a row, of a server that answers.

# There is nothing to tune, and an iterator with a tuner may take a minute to be freed: its thread
# may sleep through being cancelled. Python frees it in any thread, which blocks in the meantime.
_UNTUNED = tf.data.Options()
_UNTUNED.autotune.enabled = False


class ServerIterator:
    """Returns the elements of a dataset on a server that may go away and come back.

    Reverb's iterator reconnects by itself to a server that comes back at its address, and keeps
    what it has fetched. It is replaced if it raises, if the server has moved, or if it waits in
    vain for a server that was restarted: the machine may have gone without closing connections.
    """

    def __init__(self, replay: connection.ReplayConnection, make: Callable[[str], tf.data.Dataset]):
        """Creates an iterator; the first call builds the dataset.

        Args:
          replay: Connection to the server.
          make: Returns the dataset for the server's address.
        """
        self._replay = replay
        self._make = make
        self._fetch: array_function.CancellableFunction | None = None
        self._address, self._restarts = "", 0  # of the server that the dataset was built for
        self._waiting_since: float | None = None
        self._closed = threading.Event()

    def __call__(self) -> Any | None:
        """Returns the next element, arrays, or None once closed; blocks while there is none.

        Raises:
          ValueError: If another server with other tables has taken the server's place.
          RuntimeError: If the server answers, but not with elements.
        """
        failures = 0
        while not self._closed.is_set():
            try:
                return self._next()
            except errors.UserError:
                raise
            except (RuntimeError, tf.errors.OpError) as error:
                self._fetch = None
                if self._closed.is_set():
                    break  # without a look: the server may be about to end
                failures += self._replay.poll()
                if failures >= _MAX_ERRORS:
                    raise
                logging.debug("the stream from replay ended: %s", error)
                self._closed.wait(_RETRY_SECONDS)
        return None

    def _next(self) -> Any | None:
        if self._fetch is None:
            if not self._replay.wait(self._closed.is_set):
                return None
            self._address, self._restarts = self._replay.address, self._replay.restarts
            elements = self._make(self._address).with_options(_UNTUNED)
            self._fetch = array_function.CancellableFunction(iter(elements).get_next)
        self._waiting_since = time.monotonic()
        try:
            return self._fetch()
        finally:
            self._waiting_since = None

    def check(self) -> None:
        """Ends a call in another thread that waits for a server which is no longer there.

        Raises:
          ValueError: If another server with other tables has taken the server's place.
        """
        self._replay.raise_if_rejected()
        fetch, since = self._fetch, self._waiting_since
        if fetch is None or since is None:
            return
        is_stuck = (
            self._replay.restarts != self._restarts
            and self._replay.is_answering
            and time.monotonic() - since > _STUCK_SECONDS
        )
        if is_stuck or self._replay.address != self._address:
            fetch.cancel()

    def close(self) -> None:
        """Ends the call that is in progress, and all later calls."""
        self._closed.set()
        if self._fetch is not None:
            self._fetch.cancel()

"""Elements of a dataset on a replay server that may go away and come back."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from laser_tf import errors
from laser_tf.replay import connection
from laser_tf.training import array_function

_RETRY_SECONDS = 1.0  # from an error to the next attempt
_STUCK_SECONDS = 10.0  # without an element from a server that was restarted
_MOST_ERRORS = 5  # in a row, of a server that answers

# There is nothing to tune, and an iterator with a tuner may take a minute to be freed: its thread
# may sleep through being cancelled. Python frees it in any thread, which stands still meanwhile.
_UNTUNED = tf.data.Options()
_UNTUNED.autotune.enabled = False


class ReplaySource:
    """Returns one element after the other, arrays, for one thread.

    Reverb's iterator finds a server by itself that comes back at its address, and what it has
    fetched is not lost then. It is replaced where it raises, where the server has moved, or where
    it waits in vain for one that was restarted: the machine may have gone without a word.
    """

    def __init__(self, replay: connection.ReplayConnection, make: Callable[[str], tf.data.Dataset]):
        """Prepares a source; the first call builds the dataset.

        Args:
          replay: the server.
          make: returns the dataset for the server's address.
        """
        self._replay = replay
        self._make = make
        self._fetch: array_function.CancellableFunction | None = None
        self._address, self._restarts = "", 0  # of the server that it was built for
        self._waiting_since: float | None = None
        self._closed = threading.Event()

    def __call__(self) -> Any | None:
        """Returns the next element, or None once closed; blocks while there is none.

        Raises:
          ValueError: if another server has taken the server's place, which has other tables.
          RuntimeError: if the server answers, but not with elements.
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
                if failures >= _MOST_ERRORS:
                    raise
                logging.debug("the stream from replay ended: %s", error)
                self._closed.wait(_RETRY_SECONDS)
        return None

    def _next(self) -> Any | None:
        if self._fetch is None:
            if not self._replay.wait(self._closed.is_set):
                return None
            self._address, self._restarts = self._replay.address, self._replay.restarts
            dataset = self._make(self._address).with_options(_UNTUNED)
            self._fetch = array_function.CancellableFunction(iter(dataset).get_next)
        self._waiting_since = time.monotonic()
        try:
            return self._fetch()
        finally:
            self._waiting_since = None

    def check(self) -> None:
        """Ends a call in another thread that waits for a server which is no longer there.

        Raises:
          ValueError: if another server has taken the server's place, which has other tables.
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
        """Ends the call that is under way, and all to come."""
        self._closed.set()
        if self._fetch is not None:
            self._fetch.cancel()

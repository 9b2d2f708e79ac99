"""Iterator over a dataset on a server that may be restarted or moved."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from laser_tf import array_function, errors
from laser_tf.replay import connection

_RETRY_SECONDS = 1.0  # between an error and the next attempt
_STUCK_SECONDS = 10.0  # without an element from a server that was restarted
_MAX_ERRORS = 5  # in a row, of a server that answers

# Freeing an iterator with autotuning may block the thread that frees it for a minute.
_UNTUNED = tf.data.Options()
_UNTUNED.autotune.enabled = False


class ServerIterator:
    """Returns the elements of a dataset on a server that may be restarted or moved.

    Reverb's iterator reconnects to a server that returns at its address, and keeps prefetched
    elements. It is replaced if it raises, or if the server has moved. It is also replaced if it
    receives nothing from a restarted server, whose machine may not have closed its connections.
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
        """Blocks until the next element arrives; returns arrays, or None once closed.

        Raises:
          ValueError: If another server with other tables has replaced the server.
          RuntimeError: If the server answers, but fails to return elements.
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
                    break  # The server may be about to exit.
                failures += self._replay.poll()
                if failures >= _MAX_ERRORS:
                    raise
                logging.debug("Lost the iterator over replay: %s", error)
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
        """Cancels a call in another thread that waits for a server that has gone.

        Raises:
          ValueError: If another server with other tables has replaced the server.
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
        """Ends the call in progress and all later calls."""
        self._closed.set()
        if self._fetch is not None:
            self._fetch.cancel()

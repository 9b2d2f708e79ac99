"""Iterator over a dataset on a server that may be restarted or moved."""

import logging
import threading
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from laser_tf import array_function, errors
from laser_tf.replay import connection

_RETRY_SECONDS = 1.0  # between an error and the next attempt
_MAX_ERRORS = 5  # in a row, of a server that answers

# Freeing an iterator with autotuning may block the thread that frees it for a minute.
_UNTUNED = tf.data.Options()
_UNTUNED.autotune.enabled = False


class ServerIterator:
    """Returns the elements of a dataset on a server that may be restarted or moved.

    Reverb's iterator is replaced if it raises, or if the server has been restarted or moved: it may
    block forever if the machine of the last server has not closed its connections.
    """

    def __init__(self, replay: connection.ReplayConnection, make: Callable[[str], tf.data.Dataset]):
        """Creates an iterator; the first call makes the dataset for the server's address."""
        self._replay = replay
        self._make = make
        self._fetch: array_function.CancellableFunction | None = None
        self._server = "", 0  # address and restarts of the server that the dataset was built for
        self._closed = threading.Event()

    def __call__(self) -> Any | None:
        """Blocks until the next element arrives; returns arrays, or None once closed.

        Raises:
          ConfigError: If another server with other tables has replaced the server.
          RuntimeError: If the server answers, but fails to return elements.
        """
        failures = 0
        while not self._closed.is_set():
            try:
                if self._fetch is None:
                    if not self._replay.wait(self._closed.is_set):
                        break
                    self._server = self._replay.address, self._replay.restarts
                    elements = self._make(self._replay.address).with_options(_UNTUNED)
                    self._fetch = array_function.CancellableFunction(iter(elements).get_next)
                return self._fetch()
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

    def check(self) -> None:
        """Cancels a call in another thread that waits for a server that has gone."""
        self._replay.raise_if_rejected()
        is_same = self._server == (self._replay.address, self._replay.restarts)
        if self._fetch is not None and not is_same:
            self._fetch.cancel()

    def close(self) -> None:
        """Ends the call in progress and all later calls."""
        self._closed.set()
        if self._fetch is not None:
            self._fetch.cancel()

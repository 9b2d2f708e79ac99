"""Batches without the transitions of invalid unrolls."""

import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import tree

from laser_tf import errors
from laser_tf.replay import stored_unroll, unroll_check
from laser_tf.training import batches, unroll_accounting

_MAX_INVALID_BATCHES = 100  # in a row without any valid unroll, after which the run ends
_REMEDY = (
    "let only the processes of this run reach its replay server (--private_network, firewall; see "
    "docs/security.md)"
)


class CountingStream(batches.Stream, Protocol):
    """A stream of batches that counts unrolls and agent steps."""

    accounting: unroll_accounting.UnrollAccounting

    @property
    def untaken_steps(self) -> int:
        """See `batches.BatchStream`."""


class InvalidExperienceError(errors.UserError):
    """All unrolls of many batches in a row have values that no actor of the run writes."""


class InvalidUnrolls:
    """Masks and counts invalid unrolls, in any thread."""

    def __init__(self, check: unroll_check.UnrollCheck):
        """Creates an object without any counts."""
        self._check = check
        self._lock = threading.Lock()
        self._count = 0
        self._logged = 0  # the count of the last log line
        self._batches = 0  # in a row without any valid unroll

    def has_any(self, unrolls: stored_unroll.StoredUnroll) -> bool:
        """Returns whether an unroll of an episode is invalid, and counts the unroll.

        Args:
          unrolls: Arrays [n, ...].
        """
        return bool(self._find(unrolls).any())

    def mask(self, batch: stored_unroll.Batch) -> stored_unroll.Batch:
        """Replaces invalid unrolls by unrolls without transitions.

        Args:
          batch: Arrays.

        Raises:
          InvalidExperienceError: If none of many batches had a valid unroll.
        """
        is_invalid = self._find(batch.unrolls, batch.stored_states)
        self._batches = self._batches + 1 if is_invalid.all() else 0
        if self._batches >= _MAX_INVALID_BATCHES:
            raise InvalidExperienceError(
                f"all unrolls of the last {self._batches} batches are invalid. Check that the "
                f"environment and the weights have finite values, and {_REMEDY}"
            )
        if not is_invalid.any():
            return batch

        def blank(leaf: np.ndarray) -> np.ndarray:
            leaf = leaf.copy()
            leaf[is_invalid] = 0
            return leaf

        unrolls, states = tree.map_structure(blank, (batch.unrolls, batch.stored_states))
        unrolls.env_output.is_first[is_invalid] = True
        return batch._replace(unrolls=unrolls, stored_states=states)

    def _find(self, unrolls: stored_unroll.StoredUnroll, stored_states: Any = ()) -> np.ndarray:
        """Returns which unrolls are invalid, bool [B]; counts and logs them."""
        fields = self._check.find_invalid(unrolls, stored_states)
        is_invalid = np.zeros(len(unrolls.task), bool)
        for of_field in fields.values():
            is_invalid |= of_field
        with self._lock:
            self._count += int(is_invalid.sum())
            if self._count >= max(1, 10 * self._logged):
                self._logged = self._count
                logging.warning(
                    "Masked %s unrolls from replay so far, whose %s is not valid: %s",
                    f"{self._count:,}", " or ".join(fields), _REMEDY,
                )  # fmt: skip
        return is_invalid


class CheckedEpisodes:
    """A `batches.PolledStream` of the episodes of another stream that have no invalid unroll."""

    def __init__(self, episodes: batches.PolledStream, invalid: InvalidUnrolls):
        """Creates a stream that closes `episodes`."""
        self._episodes = episodes
        self._invalid = invalid
        self.close = episodes.close

    def get(self, should_stop: Callable[[], bool]) -> stored_unroll.StoredUnroll | None:
        """See `batches.Stream`."""
        while (episode := self._episodes.get(should_stop)) is not None:
            if not self._invalid.has_any(episode):
                return episode
        return None

    def poll(self, seconds: float) -> stored_unroll.StoredUnroll | None:
        """See `batches.PolledStream`; returns None for an invalid episode."""
        episode = self._episodes.poll(seconds)
        return None if episode is None or self._invalid.has_any(episode) else episode


class CheckedBatches:
    """The batches of another stream, with invalid unrolls masked."""

    def __init__(self, stream: CountingStream, invalid: InvalidUnrolls):
        """Creates a stream that closes `stream`."""
        self._stream = stream
        self._invalid = invalid
        self.accounting = stream.accounting
        self.close = stream.close

    def get(self, should_stop: Callable[[], bool]) -> stored_unroll.Batch | None:
        """See `batches.Stream`.

        Raises:
          InvalidExperienceError: If none of many batches had a valid unroll.
        """
        batch = self._stream.get(should_stop)
        return None if batch is None else self._invalid.mask(batch)

    @property
    def untaken_steps(self) -> int:
        """See `batches.BatchStream`."""
        return self._stream.untaken_steps

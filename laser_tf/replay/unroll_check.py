"""Checks that unrolls hold values that an agent can learn from.

Any process that reaches a replay server can insert items. Reverb checks their shapes and dtypes
only. An action that does not exist ends an update with an error, and NaN in one unroll makes the
loss of the batch NaN.
"""

import logging
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tree

from laser_tf import errors, types
from laser_tf.replay import batch_sources, stored_unroll

_MAX_INVALID_BATCHES = 100  # In a row without any valid unroll; then the run ends.
_REMEDY = (
    "let only the processes of this run reach its replay server (a firewall; see docs/security.md)"
)


class _Bounded(NamedTuple):
    """An array and the bounds of its values. NaN is within no bounds."""

    array: np.ndarray  # [B, ...]
    low: Any  # number, or array of the last axis
    high: Any

    def is_valid(self) -> bool:
        """Returns whether all values are within the bounds."""
        if np.ndim(self.low) or np.ndim(self.high) or not self.array.size:
            return bool(self.valid_entries().all())
        return bool(self.low <= self.array.min() and self.array.max() <= self.high)

    def valid_entries(self) -> np.ndarray:
        """Returns which entries of the batch are within the bounds, bool [B]."""
        return _all_of_entry((self.array >= self.low) & (self.array <= self.high))


class _Finite(NamedTuple):
    """An array of floats that must be finite."""

    array: np.ndarray  # [B, ...]

    def is_valid(self) -> bool:
        """Returns whether all values are finite."""
        # The sum of squares takes a quarter of the time, and is finite unless values are huge.
        return math.isfinite(np.vdot(self.array, self.array)) or bool(self.valid_entries().all())

    def valid_entries(self) -> np.ndarray:
        """Returns which entries of the batch are finite, bool [B]."""
        return _all_of_entry(np.isfinite(self.array))


class UnrollCheck:
    """Finds the unrolls of a batch with values that no actor of the run writes."""

    def __init__(self, spec: types.EnvironmentSpec):
        """Creates the check of unrolls of an environment with this spec."""
        self._num_tasks = spec.num_tasks
        # Steps without a transition hold zeros, also where the bounds exclude 0.
        self._low = _number_if_equal(np.minimum(spec.action.minimum, 0))
        self._high = _number_if_equal(np.maximum(spec.action.maximum, 0))
        # A word is an index. The integers of other observations are never indices.
        self._texts = [isinstance(leaf, types.TextSpec) for leaf in tree.flatten(spec.observation)]

    def find_invalid(
        self, unrolls: stored_unroll.StoredUnroll, stored_states: Any = ()
    ) -> dict[str, np.ndarray]:
        """Returns for each field with invalid values which unrolls have them, bool [B].

        Args:
          unrolls: Arrays [B, ...].
          stored_states: Arrays, see `stored_unroll.Batch`.
        """
        env_output, agent_output = unrolls.env_output, unrolls.agent_output
        states = (unrolls.core_state, unrolls.next_core_state, stored_states)
        words = [
            _Bounded(leaf, 0, types.VOCABULARY_SIZE - 1)
            for leaf, is_text in zip(tree.flatten(env_output.observation), self._texts, strict=True)
            if is_text
        ]
        fields: dict[str, Sequence[_Bounded | _Finite]] = {
            "action": [_Bounded(agent_output.action, self._low, self._high)],
            "previous_action": [_Bounded(env_output.previous_action, self._low, self._high)],
            "reward": _finite(env_output.reward),
            "discount": [_Bounded(env_output.discount, 0, 1)],
            "observation": [*_finite(env_output.observation), *words],
            "policy": [*_finite(agent_output.policy), *_positive_deviations(unrolls)],
            "extras": _finite(agent_output.extras),
            "core_state": _finite(states),
            "task": [_Bounded(unrolls.task, 0, self._num_tasks - 1)],
        }
        return {
            field: ~np.all([part.valid_entries() for part in parts], axis=0)
            for field, parts in fields.items()
            if not all(part.is_valid() for part in parts)
        }


def _finite(arrays: Any) -> list[_Finite]:
    return [_Finite(leaf) for leaf in tree.flatten(arrays) if leaf.dtype.kind == "f"]


def _all_of_entry(valid: np.ndarray) -> np.ndarray:
    return valid.reshape(len(valid), -1).all(axis=1)


def _number_if_equal(bounds: np.ndarray) -> Any:
    """Returns one number instead of equal bounds, which is faster to compare with."""
    return bounds.flat[0].item() if (bounds == bounds.flat[0]).all() else bounds


def _positive_deviations(unrolls: stored_unroll.StoredUnroll) -> list[_Bounded]:
    """Returns the standard deviations of Gaussian policies, with 1 where none is read."""
    policy = unrolls.agent_output.policy
    if "std" not in getattr(policy, "_fields", ()):
        return []
    is_first = unrolls.env_output.is_first[:, -unrolls.env_output.reward.shape[1] :]
    has_no_next = np.pad(is_first[:, 1:], [(0, 0), (0, 1)], constant_values=True)
    deviations = np.where((is_first & has_no_next)[..., None], 1, policy.std)
    limits = np.finfo(deviations.dtype)
    return [_Bounded(deviations, limits.smallest_subnormal, limits.max)]


class InvalidExperienceError(errors.UserError):
    """All unrolls of many batches in a row have values that no actor of the run writes."""


class InvalidUnrolls:
    """Masks and counts invalid unrolls, in any thread."""

    def __init__(self, check: UnrollCheck):
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


class CheckedBatches:
    """A `batch_sources.BatchSource` of another source's batches, with invalid unrolls masked."""

    def __init__(self, source: batch_sources.BatchSource, invalid: InvalidUnrolls):
        """Creates a source that closes `source`."""
        self._source = source
        self._invalid = invalid
        self.metrics = source.metrics
        self.close = source.close

    def get(self, should_stop: Callable[[], bool]) -> stored_unroll.Batch | None:
        """See `batch_sources.Source`.

        Raises:
          InvalidExperienceError: If none of many batches had a valid unroll.
        """
        batch = self._source.get(should_stop)
        return None if batch is None else self._invalid.mask(batch)

    @property
    def unconsumed_steps(self) -> int:
        """See `batch_sources.BatchSource`."""
        return self._source.unconsumed_steps

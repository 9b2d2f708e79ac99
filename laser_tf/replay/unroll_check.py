"""Checks that unrolls hold values that an agent can learn from.

Any process that reaches a replay server can insert items, and Reverb checks only their shapes and
dtypes. An action that does not exist fails an update, and NaN in one unroll makes the loss NaN.
"""

import logging
from typing import Any

import numpy as np
import tree

from laser_tf import errors, types
from laser_tf.replay import stored_unroll

_MAX_INVALID_BATCHES = 100  # In a row without any valid unroll; then the run ends.
_REMEDY = (
    "let only the processes of this run reach its replay server (a firewall; see docs/security.md)"
)


class InvalidExperienceError(errors.UserError):
    """All unrolls of many batches in a row have values that no actor of the run writes."""


class UnrollCheck:
    """Finds, masks and counts unrolls with values that no actor of the run writes."""

    def __init__(self, spec: types.EnvironmentSpec):
        self._num_tasks = spec.num_tasks
        # Steps without a transition hold zeros, also where the bounds exclude 0.
        self._action_bounds = np.minimum(spec.action.minimum, 0), np.maximum(spec.action.maximum, 0)
        # A word is an index. The integers of other observations are never indices.
        self._texts = [isinstance(leaf, types.TextSpec) for leaf in tree.flatten(spec.observation)]
        self._count = 0
        self._logged = 0  # count in the last log line
        self._batches = 0  # batches in a row without any valid unroll

    def find_invalid(
        self, unrolls: stored_unroll.StoredUnroll, stored_states: Any = ()
    ) -> dict[str, np.ndarray]:
        """Returns field -> unrolls with invalid values, bool [B]; omits fields without any."""
        env_output, agent_output = unrolls.env_output, unrolls.agent_output
        observation = tree.flatten(env_output.observation)
        words = [leaf for leaf, is_text in zip(observation, self._texts, strict=True) if is_text]
        states = (unrolls.core_state, unrolls.next_core_state, stored_states)
        valid = {
            "action": [_are_within(agent_output.action, *self._action_bounds)],
            "previous_action": [_are_within(env_output.previous_action, *self._action_bounds)],
            "reward": _are_finite(env_output.reward),
            "discount": [_are_within(env_output.discount, 0, 1)],
            "observation": [
                *_are_finite(env_output.observation),
                *(_are_within(leaf, 0, types.VOCABULARY_SIZE - 1) for leaf in words),
            ],
            "policy": [*_are_finite(agent_output.policy), _have_positive_deviations(unrolls)],
            "extras": _are_finite(agent_output.extras),
            "core_state": _are_finite(states),
            "task": [_are_within(unrolls.task, 0, self._num_tasks - 1)],
        }
        invalid = {field: ~np.all(parts, axis=0) for field, parts in valid.items() if parts}
        return {field: entries for field, entries in invalid.items() if entries.any()}

    def has_any(self, unrolls: stored_unroll.StoredUnroll) -> bool:
        """Returns whether an unroll of an episode is invalid, and counts the unroll."""
        return bool(self._find(unrolls).any())

    def mask(self, batch: stored_unroll.Batch) -> stored_unroll.Batch:
        """Replaces invalid unrolls of a batch of arrays by unrolls without transitions.

        Raises InvalidExperienceError if none of many batches had a valid unroll.
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
        unrolls = unrolls._replace(stream=batch.unrolls.stream, number=batch.unrolls.number)
        return batch._replace(unrolls=unrolls, stored_states=states)

    def _find(self, unrolls: stored_unroll.StoredUnroll, stored_states: Any = ()) -> np.ndarray:
        """Returns which unrolls are invalid, bool [B]; counts and logs them."""
        fields = self.find_invalid(unrolls, stored_states)
        is_invalid = np.any([np.zeros(len(unrolls.task), bool), *fields.values()], axis=0)
        self._count += int(is_invalid.sum())
        if self._count >= max(1, 10 * self._logged):
            self._logged = self._count
            logging.warning(
                "Masked %s unrolls from replay so far, whose %s is not valid: %s",
                f"{self._count:,}", " or ".join(fields), _REMEDY,
            )  # fmt: skip
        return is_invalid


def _all_of_entry(valid: np.ndarray) -> np.ndarray:
    return valid.reshape(len(valid), -1).all(axis=1)


def _are_within(array: np.ndarray, low: Any, high: Any) -> np.ndarray:
    """Returns which entries of a batch are within bounds, bool [B]; NaN is within no bounds."""
    return _all_of_entry((array >= low) & (array <= high))


def _are_finite(arrays: Any) -> list[np.ndarray]:
    """Returns for each array of floats which entries of a batch are finite, bool [B]."""
    leaves = [leaf for leaf in tree.flatten(arrays) if leaf.dtype.kind == "f"]
    return [_all_of_entry(np.isfinite(leaf)) for leaf in leaves]


def _have_positive_deviations(unrolls: stored_unroll.StoredUnroll) -> np.ndarray:
    """Returns which entries have positive standard deviations at all steps with a transition."""
    policy = unrolls.agent_output.policy
    is_first = unrolls.env_output.is_first[:, -unrolls.env_output.reward.shape[1] :]
    has_no_next = np.pad(is_first[:, 1:], [(0, 0), (0, 1)], constant_values=True)
    valid = np.ones(len(unrolls.task), bool)
    for path, leaf in tree.flatten_with_path(policy):
        if path[-1:] == ("std",):
            deviations = np.where((is_first & has_no_next)[..., None], 1, leaf)
            smallest = np.finfo(deviations.dtype).smallest_subnormal
            valid &= _are_within(deviations, smallest, np.inf)
    return valid

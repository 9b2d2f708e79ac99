"""Masks of allowed actions in observations: bool, or 0 or 1, for each discrete action."""

from typing import Any

import numpy as np
from dm_env import specs

from laser_tf import observations
from laser_tf.environments import faults

NAME = f"observation[{observations.ACTION_MASK!r}]"  # name of the leaf in messages


def canonical_spec(spec: Any, num_actions: int) -> specs.Array:
    """Returns the canonical spec, bool [A], of a mask of A actions; 0 for actions of other kinds.

    Raises:
      UnsupportedSpaceError: If the actions have no mask, or the spec is not that of a mask.
    """
    remedy = "a wrapper can change it, or rename the key if it has another meaning"
    if not num_actions:
        raise faults.UnsupportedSpaceError(
            f"its {observations.ACTION_MASK} must come with single discrete actions: {remedy}"
        )
    is_mask = isinstance(spec, specs.Array) and spec.dtype.kind in "bui"
    if not is_mask or spec.shape != (num_actions,):
        got = f"{spec.dtype} {list(spec.shape)}" if isinstance(spec, specs.Array) else repr(spec)
        raise faults.UnsupportedSpaceError(
            f"its {observations.ACTION_MASK} must be bool or integer [{num_actions}], with an "
            f"entry for each action, got {got}: {remedy}"
        )
    return specs.Array([num_actions], bool, observations.ACTION_MASK)


def convert(mask: np.ndarray, is_terminal: bool) -> np.ndarray:
    """Converts a mask, bool or integers [A], to bool [A].

    Raises:
      ValueError: If an entry is not 0 or 1, or if no action is allowed before termination.
    """
    allowed = mask.astype(bool)
    if (allowed != mask).any():
        raise ValueError(
            f"its {observations.ACTION_MASK} must be 0 or 1 for each action, got {mask.tolist()}"
        )
    if not is_terminal and not allowed.any():
        raise ValueError(
            f"its {observations.ACTION_MASK} forbids every action before the episode has "
            "terminated: allow at least one action"
        )
    return allowed

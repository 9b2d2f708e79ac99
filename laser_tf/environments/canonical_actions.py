"""Converts the actions of agents to the native actions of an environment.

An action is a `DiscreteArray`, or a `BoundedArray`: an integer becomes a `DiscreteArray` from 0,
floats of any shape a vector float32 [D] with finite bounds.
"""

from typing import Any

import numpy as np
from dm_env import specs

from laser_tf.environments import canonical_observations, faults

_MOST_ACTIONS = 10_000  # a policy has an output for each


class Action:
    """One environment's actions, from canonical ones.

    Attributes:
      spec: Canonical spec.
      own: Native spec.
    """

    def __init__(self, spec: Any):
        """Takes the environment's own spec.

        Raises:
          UnsupportedSpaceError: If the spec has no canonical form; the message gives the reason.
        """
        if not isinstance(spec, specs.Array):
            raise faults.UnsupportedSpaceError(
                f"its action is {canonical_observations.type_name(spec)}: agents take one integer "
                "or one array of floats; put parts together in the environment"
            )
        self.own = spec
        if isinstance(spec, specs.DiscreteArray) or not spec.shape and spec.dtype.kind in "ui":
            self.spec: specs.BoundedArray = self._discrete(spec)
        else:
            self.spec = self._continuous(spec)

    def _discrete(self, spec: specs.Array) -> specs.DiscreteArray:
        if not isinstance(spec, specs.BoundedArray):
            raise faults.UnsupportedSpaceError(
                "its action is an integer without bounds: give least and greatest"
            )
        self._least = int(spec.minimum)
        values = int(spec.maximum) - self._least + 1
        if not 1 <= values <= _MOST_ACTIONS:
            raise faults.UnsupportedSpaceError(
                f"its action has {values} values: agents choose among 1 to {_MOST_ACTIONS:,}"
            )
        return specs.DiscreteArray(values, np.int32, "action")

    def _continuous(self, spec: specs.Array) -> specs.BoundedArray:
        if spec.dtype.kind != "f":
            raise faults.UnsupportedSpaceError(
                f"its action is {spec.dtype} {list(spec.shape)}: agents take one integer or an "
                "array of floats; make one integer of all combinations in the environment"
            )
        if not isinstance(spec, specs.BoundedArray):
            raise faults.UnsupportedSpaceError(
                "its action has no bounds: give its spec finite ones"
            )
        low, high = (
            np.broadcast_to(bound, spec.shape).reshape(-1) for bound in (spec.minimum, spec.maximum)
        )
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = low.astype(np.float32), high.astype(np.float32)
            # TF-Agents has float32's extremes for what has no bounds.
            is_finite = np.isfinite(high - low).all()
        if not low.size:
            raise faults.UnsupportedSpaceError(
                f"its action has the shape {list(spec.shape)}: no entries"
            )
        if not is_finite:
            raise faults.UnsupportedSpaceError(
                f"its action has the bounds {low.tolist()} and {high.tolist()}: agents need finite "
                "ones; give them to its action space or spec (gymnasium.wrappers.TransformAction "
                "takes a new space; ClipAction makes bounds infinite: leave it out)"
            )
        if not (low < high).all():
            raise faults.UnsupportedSpaceError(
                f"its action has the bounds {low.tolist()} and {high.tolist()}: each lower one "
                "must be below its upper one"
            )
        return specs.BoundedArray(low.shape, np.float32, low, high, "action")

    def __call__(self, action: np.ndarray) -> Any:
        """Returns the native action of a canonical one, int32 [] or float32 [D]."""
        if isinstance(self.spec, specs.DiscreteArray):
            return self.own.dtype.type(int(action) + self._least)
        # Bounds of float64 may lie within their own float32.
        shaped = action.reshape(self.own.shape).astype(self.own.dtype)
        return np.clip(shaped, self.own.minimum, self.own.maximum)

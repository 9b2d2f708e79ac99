"""Converts the actions of agents to the native actions of an environment.

The canonical spec of an integer is a `DiscreteArray` from 0. The canonical spec of floats of any
shape is a vector float32 [D] with finite bounds.
"""

from typing import Any

import numpy as np
from dm_env import specs

from laser_tf.environments import canonical_observations, faults

_MAX_ACTIONS = 10_000  # A policy has an output for each.


class Action:
    """Converts canonical actions of one environment to native ones.

    Attributes:
      spec: Canonical spec.
      native_spec: Native spec.

    Raises:
      UnsupportedSpaceError: If the native spec has no canonical form.
    """

    def __init__(self, spec: Any):
        if not isinstance(spec, specs.Array):
            kind = canonical_observations.type_name(spec)
            raise faults.UnsupportedSpaceError(
                f"its action is {kind}: agents take one integer or one array of floats; combine "
                "the parts in the environment"
            )
        self.native_spec = spec
        self.spec: specs.BoundedArray
        if isinstance(spec, specs.DiscreteArray) or not spec.shape and spec.dtype.kind in "ui":
            self.spec = _discrete_action(spec)
        else:
            self.spec = _continuous_action(spec)

    def __call__(self, action: np.ndarray) -> Any:
        """Returns the native action of a canonical one, int32 [] or float32 [D]."""
        native = self.native_spec
        if isinstance(self.spec, specs.DiscreteArray):
            return native.dtype.type(int(action) + int(native.minimum))
        # Bounds of float64 may be within their own float32.
        shaped = action.reshape(native.shape).astype(native.dtype)
        return np.clip(shaped, native.minimum, native.maximum)


def _discrete_action(spec: specs.Array) -> specs.DiscreteArray:
    if not isinstance(spec, specs.BoundedArray):
        raise faults.UnsupportedSpaceError(
            "its action is an integer without bounds: give it a minimum and a maximum"
        )
    values = int(spec.maximum) - int(spec.minimum) + 1
    if not 1 <= values <= _MAX_ACTIONS:
        raise faults.UnsupportedSpaceError(
            f"its action has {values} values: agents choose among 1 to {_MAX_ACTIONS:,}"
        )
    return specs.DiscreteArray(values, np.int32, "action")


def _continuous_action(spec: specs.Array) -> specs.BoundedArray:
    if spec.dtype.kind != "f" or 0 in spec.shape:
        raise faults.UnsupportedSpaceError(
            f"its action is {spec.dtype} {list(spec.shape)}: agents take one integer or an array "
            "of floats; make one integer of all combinations in the environment"
        )
    if not isinstance(spec, specs.BoundedArray):
        raise faults.UnsupportedSpaceError("its action has no bounds: give its spec finite bounds")
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = (
            np.broadcast_to(bound, spec.shape).reshape(-1).astype(np.float32)
            for bound in (spec.minimum, spec.maximum)
        )
        # TF-Agents uses the extremes of float32 for actions without bounds.
        is_finite = np.isfinite(high - low).all()
    if not is_finite or not (low < high).all():
        raise faults.UnsupportedSpaceError(
            f"its action has the bounds {low.tolist()} and {high.tolist()}: agents need finite "
            "bounds, each minimum below its maximum; gymnasium.wrappers.TransformAction takes a "
            "new space"
        )
    return specs.BoundedArray(low.shape, np.float32, low, high, "action")

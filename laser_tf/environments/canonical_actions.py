"""Converts the actions of agents to the native actions of an environment.

A native action may be any nest of dictionaries and tuples. Its leaves are integers, arrays of
integers, and arrays of floats, all with bounds. The canonical spec is

    a `DiscreteArray` from 0                 for one integer
    float32 [D] with finite bounds           for floats only, the entries of all leaves
    a `types.ProductSpec`                    for other nests and arrays of integers

The parts of a `ProductSpec` are each integer and each array of floats, in the order of
`tree.flatten`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tree
from dm_env import specs

from laser_tf import types
from laser_tf.environments import canonical_observations, faults

_MAX_ACTIONS = 10_000  # Of all integers together: a policy has an output for each value.


class Action:
    """Converts canonical actions, of `spec`, to actions of a nest `native_spec`.

    Raises:
      UnsupportedSpaceError: If the native spec has no canonical form; the message names the part.
    """

    def __init__(self, spec: Any):
        self.native_spec = spec
        parts: list[specs.BoundedArray] = []
        self._leaves: list[tuple[slice, specs.BoundedArray]] = []  # entries of a canonical action
        start = 0
        for name, leaf in _flatten(spec, "action"):
            parts += _canonical_parts(leaf, name)
            stop = start + int(np.prod(leaf.shape))
            self._leaves.append((slice(start, stop), leaf))
            start = stop
        self.spec = _join(parts)

    def __call__(self, action: np.ndarray) -> Any:
        """Returns the native action of a canonical one, int32 [], int32 [D] or float32 [D]."""
        if isinstance(self.native_spec, specs.Array):  # Flattening takes microseconds.
            return _native_leaf(self.native_spec, action)
        leaves = [_native_leaf(leaf, action.reshape(-1)[part]) for part, leaf in self._leaves]
        return tree.unflatten_as(self.native_spec, leaves)


def _flatten(spec: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yields names and leaves of a nest in the order of `tree.flatten`."""
    if isinstance(spec, Mapping):
        canonical_observations.check_keys(spec, name)
        for key in sorted(spec):
            yield from _flatten(spec[key], f"{name}[{key!r}]")
    elif isinstance(spec, tuple | list):
        for index, part in enumerate(spec):
            yield from _flatten(part, f"{name}[{index}]")
    else:
        yield name, spec


def _canonical_parts(spec: Any, name: str) -> list[specs.BoundedArray]:
    if not isinstance(spec, specs.Array):
        raise faults.UnsupportedSpaceError(
            f"its {name} is {canonical_observations.type_name(spec)}: agents take integers and "
            "arrays of numbers; change it in the environment"
        )
    if spec.dtype.kind not in "uif" or 0 in spec.shape:
        raise faults.UnsupportedSpaceError(
            f"its {name} is {spec.dtype} {list(spec.shape)}: agents take integers and floats; "
            "change it in the environment"
        )
    if not isinstance(spec, specs.BoundedArray):
        raise faults.UnsupportedSpaceError(
            f"its {name} has no bounds: give its spec a finite minimum and maximum"
        )
    return [_continuous_part(spec, name)] if spec.dtype.kind == "f" else _discrete_parts(spec, name)


def _discrete_parts(spec: specs.BoundedArray, name: str) -> list[specs.BoundedArray]:
    low, high = (np.broadcast_to(bound, spec.shape) for bound in (spec.minimum, spec.maximum))
    bounds = zip(low.flat, high.flat, strict=True)
    counts = [int(maximum) - int(minimum) + 1 for minimum, maximum in bounds]
    if max(counts) > _MAX_ACTIONS:
        raise faults.UnsupportedSpaceError(
            f"its {name} has {max(counts)} values: agents choose among 1 to {_MAX_ACTIONS:,}. "
            "Bound the integers more narrowly"
        )
    return [specs.DiscreteArray(count, np.int32, "action") for count in counts]


def _continuous_part(spec: specs.BoundedArray, name: str) -> specs.BoundedArray:
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = (
            np.broadcast_to(bound, spec.shape).reshape(-1).astype(np.float32)
            for bound in (spec.minimum, spec.maximum)
        )
        # TF-Agents uses the extremes of float32 for actions without bounds.
        is_finite = np.isfinite(high - low).all()
    if not is_finite or not (low < high).all():
        raise faults.UnsupportedSpaceError(
            f"its {name} has the bounds {low.tolist()} and {high.tolist()}: agents need finite "
            "bounds, each minimum below its maximum; gymnasium.wrappers.TransformAction takes a "
            "new space"
        )
    return specs.BoundedArray(low.shape, np.float32, low, high, "action")


def _join(parts: list[specs.BoundedArray]) -> specs.BoundedArray:
    """Returns the spec of the actions of all parts."""
    if not parts:
        raise faults.UnsupportedSpaceError("its action is empty: define at least one number")
    if len(parts) == 1:
        return parts[0]
    num_values = sum(getattr(part, "num_values", 0) for part in parts)
    if num_values > _MAX_ACTIONS:
        raise faults.UnsupportedSpaceError(
            f"its action has {num_values:,} values in total: agents take {_MAX_ACTIONS:,} at most. "
            "Bound the integers more narrowly"
        )
    if num_values:
        return types.ProductSpec(parts)
    # The dimensions of one Gaussian are independent, too.
    low, high = (
        np.concatenate([getattr(part, bound) for part in parts]) for bound in ("minimum", "maximum")
    )
    return specs.BoundedArray(low.shape, np.float32, low, high, "action")


def _native_leaf(spec: specs.BoundedArray, numbers: np.ndarray) -> Any:
    """Returns the native value of a leaf, of the entries of a canonical action."""
    if spec.dtype.kind == "f":
        # Bounds of float64 may be within their own float32.
        return np.clip(numbers.reshape(spec.shape).astype(spec.dtype), spec.minimum, spec.maximum)
    if not spec.shape:
        return spec.dtype.type(int(numbers.item()) + int(spec.minimum))
    return (numbers.reshape(spec.shape).astype(np.int64) + spec.minimum).astype(spec.dtype)

"""Converts the native observations of an environment to those that agents read.

An observation may be any nest of dictionaries and tuples. Its leaves become

    uint8 or bool [H, W] or [H, W, C]       an image, uint8 [H, W, C] (bool: 0 and 255)
    other numbers [H, W, C]                 an image, float32 [H, W, C]
    numbers of rank 0 or 1                  a number or a vector, float32 [] or [D]
    other numbers [M, N]                    their entries as a vector, float32 [M * N]
    `DiscreteArray`                         itself, int32
    `StringArray` of rank 0                 a `types.TextSpec`
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from dm_env import specs

from laser_tf import observations, types
from laser_tf.environments import faults, instructions

_MAX_CHANNELS = 4  # of an image [C, H, W] that is recognised as such
_MIN_SIDE = 16  # pixels, of its height and width
_MOST_VALUES = 100_000  # of a leaf that is one of so many: a network has a weight for each


class Observation:
    """One environment's observations, checked against its specs and made canonical.

    Attributes:
      spec: nest of the specs that agents see.
    """

    def __init__(self, spec: Any, text_length: int):
        """Takes the environment's own nest of specs, and the words of its longest text.

        Raises:
          UnsupportedSpaceError: for what has no canonical form; the message names the leaf.
        """
        self._own = spec
        self._text_length = text_length
        self.spec = self._map(spec, "observation")
        if isinstance(spec, Mapping | tuple | list) and not _leaves(self.spec):
            raise faults.UnsupportedSpaceError("its observation is empty: show the agent something")
        try:
            observations.check_names(self.spec)
        except ValueError as error:
            raise faults.UnsupportedSpaceError(str(error)) from None

    def _map(self, spec: Any, name: str) -> Any:
        if isinstance(spec, Mapping):
            return {key: self._map(spec[key], f"{name}[{key!r}]") for key in _sorted(spec, name)}
        if isinstance(spec, tuple | list):
            return tuple(self._map(part, f"{name}[{index}]") for index, part in enumerate(spec))
        return _canonical_leaf(spec, name, self._text_length)

    def __call__(self, value: Any) -> list[np.ndarray]:
        """The canonical leaves of an observation, in the order of `tree.flatten`.

        Raises:
          ValueError: If a value does not fit the native spec; the message names it.
        """
        leaves: list[np.ndarray] = []
        self._convert(self._own, self.spec, value, "observation", leaves)
        return leaves

    def outside_bounds(self, value: Any) -> str:
        """Returns what of a converted observation is outside its native bounds; "" for nothing."""
        return _outside_bounds(self._own, value, "observation")

    def _convert(self, own: Any, spec: Any, value: Any, name: str, leaves: list) -> None:
        if isinstance(spec, dict):
            if not isinstance(value, Mapping) or value.keys() != spec.keys():
                raise ValueError(f"its {name} has {_keys(value)}, and its spec {_keys(spec)}")
            for key in spec:
                self._convert(own[key], spec[key], value[key], f"{name}[{key!r}]", leaves)
        elif isinstance(spec, tuple):
            if not isinstance(value, tuple | list) or len(value) != len(spec):
                raise ValueError(
                    f"its {name} is {type_name(value)}, and its spec {len(spec)} parts"
                )
            for index, parts in enumerate(zip(own, spec, value, strict=True)):
                self._convert(*parts, f"{name}[{index}]", leaves)
        elif isinstance(spec, types.TextSpec) and not isinstance(own, types.TextSpec):
            leaves.append(_encode(value, self._text_length, name))
        else:
            leaves.append(_convert_leaf(own, spec, value, name))


def _sorted(spec: Mapping, name: str) -> list:
    """The keys in the order of `tree.flatten`, by which leaves are stored.

    Raises:
      UnsupportedSpaceError: For keys that are no texts, which TensorFlow's signatures need.
    """
    if not all(isinstance(key, str) for key in spec):
        raise faults.UnsupportedSpaceError(
            f"its {name} has {_keys(spec)}: use texts for all of them"
        )
    return sorted(spec)


def _outside_bounds(own: Any, value: Any, name: str) -> str:
    if isinstance(own, Mapping):
        parts = [(own[key], value[key], f"{name}[{key!r}]") for key in own]
    elif isinstance(own, tuple | list):
        parts = [(own[i], value[i], f"{name}[{i}]") for i in range(len(own))]
    elif isinstance(own, specs.BoundedArray) and not isinstance(own, types.TextSpec):
        value = np.asarray(value)
        if own.dtype.kind == "f":  # as the bounds were rounded: float32(0.7) is below 0.7
            value = value.astype(own.dtype)
        if (value < own.minimum).any() or (value > own.maximum).any():
            return (
                f"its {name} has values from {value.min():g} to {value.max():g}, and its spec's "
                f"bounds are {own.minimum.min():g} and {own.maximum.max():g}"
            )
        return ""
    else:
        return ""
    return next(filter(None, (_outside_bounds(*part) for part in parts)), "")


def _leaves(nest: Any) -> list[Any]:
    if isinstance(nest, dict):
        nest = tuple(nest.values())
    return [leaf for part in nest for leaf in _leaves(part)] if isinstance(nest, tuple) else [nest]


def _canonical_leaf(spec: Any, name: str, text_length: int) -> specs.Array:
    if isinstance(spec, types.TextSpec):
        return spec
    if isinstance(spec, specs.StringArray) and not spec.shape:
        return types.TextSpec(text_length)
    if isinstance(spec, specs.StringArray) or not isinstance(spec, specs.Array):
        raise faults.UnsupportedSpaceError(
            f"its {name} is {type_name(spec)}: agents read arrays of numbers and texts"
        )
    shape, kind = spec.shape, spec.dtype.kind
    if isinstance(spec, specs.DiscreteArray):
        if spec.num_values > _MOST_VALUES:
            raise faults.UnsupportedSpaceError(
                f"its {name} is one of {spec.num_values} values, which agents read one-hot: use "
                f"{_MOST_VALUES:,} at most, or show it as numbers (a Box)"
            )
        return specs.DiscreteArray(spec.num_values, np.int32, spec.name)
    if kind not in "buif":
        raise faults.UnsupportedSpaceError(
            f"its {name} has the dtype {spec.dtype}: agents read numbers (bool, integers, floats)"
        )
    if 0 in shape:
        raise faults.UnsupportedSpaceError(
            f"its {name} has the shape {list(shape)}, no entries: leave it out"
        )
    if len(shape) > 3:
        raise faults.UnsupportedSpaceError(
            f"its {name} has the shape {list(shape)}: agents read images [H, W, C] and vectors "
            "[D]; reshape it in the environment"
        )
    if len(shape) == 3 and shape[0] <= _MAX_CHANNELS and min(shape[1:]) >= _MIN_SIDE:
        raise faults.UnsupportedSpaceError(
            f"its {name} must have the shape [height, width, channels], got {list(shape)}, "
            "channels first: move that axis in the environment, e.g. by numpy.moveaxis(image, 0, "
            "-1), and stack frames by replay.frame_stack"
        )
    if _is_picture(spec):
        return observations.image_spec(shape[0], shape[1], shape[2] if len(shape) == 3 else 1)
    if len(shape) == 2:
        shape = (shape[0] * shape[1],)
    return specs.Array(shape, np.float32, spec.name)


def _is_picture(spec: specs.Array) -> bool:
    return len(spec.shape) >= 2 and spec.dtype in (np.uint8, np.bool_)


def _convert_leaf(own: specs.Array, spec: specs.Array, value: Any, name: str) -> np.ndarray:
    """A leaf's canonical value; the array may still be the environment's own."""
    array = np.asarray(value)
    if array.shape != own.shape:
        raise ValueError(
            f"its {name} has the shape {list(array.shape)}, and its spec {list(own.shape)}"
        )
    known = {"b": "b", "u": "bui", "i": "bui", "f": "buif"}[own.dtype.kind]
    is_exact = spec.dtype == np.uint8  # other integers would wrap
    if (array.dtype != own.dtype) if is_exact else (array.dtype.kind not in known):
        raise ValueError(f"its {name} has the dtype {array.dtype}, and its spec {own.dtype}")
    if isinstance(spec, specs.DiscreteArray) and not 0 <= array < spec.num_values:
        raise ValueError(f"its {name} is {array}, and its spec has 0 to {spec.num_values - 1}")
    if is_exact and array.dtype == np.bool_:
        array = array * np.uint8(255)
    return array.astype(spec.dtype, copy=False).reshape(spec.shape)


def _encode(value: Any, length: int, name: str) -> np.ndarray:
    text = value.item() if isinstance(value, np.ndarray) and not value.shape else value
    if isinstance(text, bytes):
        text = text.decode()
    if not isinstance(text, str):
        raise ValueError(f"its {name} is {type_name(value)}, and its spec a text")
    words = instructions.count(text)
    if words > length:
        raise ValueError(
            f"its {name}, {text!r}, has {words} words: use environment.text_length={words} or more"
        )
    return instructions.encode(text, length)


def _keys(value: Any) -> str:
    return (
        f"the keys {list(value)}" if isinstance(value, Mapping) else f"no keys ({type_name(value)})"
    )


def type_name(value: Any) -> str:
    """Returns the type of a value, for messages."""
    if isinstance(value, Mapping | tuple | list):
        return f"a {type(value).__name__} of {len(value)} parts"
    return f"a {type(value).__name__}"

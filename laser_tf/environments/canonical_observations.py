"""Converts the native observations of an environment to the observations of agents.

An observation may be any nest of dictionaries and tuples. Its leaves are converted as follows:

    uint8 or bool [H, W] or [H, W, C]       an image, uint8 [H, W, C] (bool: 0 and 255)
    other numbers [H, W, C]                 an image, float32 [H, W, C]
    numbers of rank 0 or 1                  a number or a vector, float32 [] or [D]
    other numbers [M, N]                    their entries as a vector, float32 [M * N]
    `DiscreteArray`                         itself, int32
    `CategoryArray`                         a `types.ProductSpec` of its entries, int32
    `StringArray` of rank 0                 a `types.TextSpec`
    key `action_mask` of a dictionary       a mask, bool [A], see `action_masks`
"""

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tree
from dm_env import specs

from laser_tf import errors, observations, types
from laser_tf.environments import action_masks, faults

_MAX_CHANNELS = 4  # Of an image [C, H, W] that is recognised as such.
MIN_SIDE = 16  # Pixels; images are rarely lower or narrower.
_MAX_VALUES = 100_000  # Of a leaf of categories: a network has a weight for each.
# `dtype.kind` of a native spec -> accepted kinds of its values.
_ACCEPTED_KINDS = {"b": "b", "u": "bui", "i": "bui", "f": "buif"}


class CategoryArray(specs.BoundedArray):
    """Native spec of an array whose integers, from 0 to `maximum`, have no order."""

    def __reduce__(self) -> tuple:
        return CategoryArray, super().__reduce__()[1]


class _Leaf(NamedTuple):
    """One array or text of an observation."""

    name: str  # For messages.
    native: Any
    spec: specs.Array
    offset: Any  # Number or array at which native integers start; None for 0.


class Observation:
    """Checks observations of one environment and converts them to a nest of canonical `spec`."""

    def __init__(
        self, spec: Any, max_words: int, offsets: Sequence[Any] = (), num_actions: int = 0
    ):
        """Converts a nest of native specs.

        `offsets` holds for each leaf the number or array at which its integers start; () for 0. A
        mask has `num_actions` entries; 0 if the actions are not discrete.

        Raises:
          UnsupportedSpaceError: For a part without a canonical form; the message names it.
        """
        self._native = spec
        self._max_words = max_words
        self._leaves: list[_Leaf] = []
        self._offsets = iter(offsets)
        self._num_actions = num_actions
        self.spec = self._convert_specs(spec, "observation")
        if not tree.flatten(observations.without_action_mask(self.spec)):
            raise faults.UnsupportedSpaceError(
                "its observation must have a part other than an action_mask, got none. Show the "
                "agent something"
            )
        observations.check_names(self.spec)

    def _convert_specs(self, spec: Any, name: str) -> Any:
        if name == action_masks.NAME:
            return self._add_leaf(name, spec, action_masks.canonical_spec(spec, self._num_actions))
        if isinstance(spec, Mapping):
            check_keys(spec, name)
            return {key: self._convert_specs(spec[key], f"{name}[{key!r}]") for key in sorted(spec)}
        if isinstance(spec, tuple | list):
            return tuple(
                self._convert_specs(part, f"{name}[{index}]") for index, part in enumerate(spec)
            )
        return self._add_leaf(name, spec, _canonical_leaf(spec, name, self._max_words))

    def _add_leaf(self, name: str, spec: Any, canonical: specs.Array) -> specs.Array:
        offset = next(self._offsets, 0)
        self._leaves.append(_Leaf(name, spec, canonical, offset if np.any(offset) else None))
        return canonical

    def _native_leaves(self, value: Any) -> list[Any]:
        try:
            is_nest = self._leaves[0].native is not self._native  # Flattening takes microseconds.
            return (
                tree.flatten_up_to(self._native, value, check_types=False) if is_nest else [value]
            )
        except (TypeError, ValueError) as error:
            shown = f"the keys {list(value)}" if isinstance(value, Mapping) else type_name(value)
            raise ValueError(
                f"its observation, {shown}, does not fit its spec {type_name(self._native)}: "
                f"{error}"
            ) from None

    def __call__(self, value: Any, *, is_terminal: bool = False) -> list[np.ndarray]:
        """Returns the canonical leaves of a native observation, in the order of `tree.flatten`.

        In a terminal state, a mask may forbid all actions.

        Raises:
          ConfigError: If a text has too many words.
          ValueError: If a value does not fit the native spec; the message names it.
        """
        return [
            _encode_leaf(leaf, part, self._max_words)
            if isinstance(leaf.native, specs.StringArray)
            else _convert_leaf(leaf, part, is_terminal)
            for leaf, part in zip(self._leaves, self._native_leaves(value), strict=True)
        ]

    def offsets(self) -> list[Any]:
        """Returns the start of each leaf's integers: a number, or a list for all entries."""
        starts = [np.asarray(0 if leaf.offset is None else leaf.offset) for leaf in self._leaves]
        return [start.reshape(-1).tolist() if start.ndim else start.item() for start in starts]


def _canonical_leaf(spec: Any, name: str, max_words: int) -> specs.Array:
    if isinstance(spec, types.TextSpec):
        return spec
    if isinstance(spec, specs.StringArray) and not spec.shape:
        return types.TextSpec(max_words)
    if isinstance(spec, specs.StringArray) or not isinstance(spec, specs.Array):
        raise faults.UnsupportedSpaceError(
            f"its {name} is {type_name(spec)}: agents read arrays of numbers and texts"
        )
    if isinstance(spec, specs.DiscreteArray | CategoryArray) and 0 not in spec.shape:
        maximum = np.broadcast_to(spec.maximum, spec.shape).reshape(-1).astype(np.int64)
        counts = (maximum + 1).tolist()
        if sum(counts) > _MAX_VALUES:
            raise faults.UnsupportedSpaceError(
                f"its {name} has {sum(counts)} values, which agents read one-hot: use "
                f"{_MAX_VALUES:,} at most, or show it as numbers (a Box)"
            )
        parts = [specs.DiscreteArray(count, np.int32, spec.name) for count in counts]
        return types.ProductSpec(parts, spec.name) if spec.shape else parts[0]
    shape = spec.shape
    if spec.dtype.kind not in "buif" or 0 in shape or len(shape) > 3:
        raise faults.UnsupportedSpaceError(
            f"its {name} is {spec.dtype} {list(shape)}: agents read numbers (bool, integers, "
            "floats) as images [H, W, C] and vectors [D]; change it in the environment"
        )
    if len(shape) == 3 and _has_channels_first(shape):
        raise faults.UnsupportedSpaceError(
            f"its {name} must have the shape [height, width, channels], got {list(shape)}, "
            "channels first: move that axis in the environment, e.g. by numpy.moveaxis(image, 0, "
            "-1), and stack frames by replay.frame_stack"
        )
    if len(shape) >= 2 and spec.dtype in (np.uint8, np.bool_):
        return observations.image_spec(shape[0], shape[1], shape[2] if len(shape) == 3 else 1)
    if len(shape) == 2:
        shape = (shape[0] * shape[1],)
    return specs.Array(shape, np.float32, spec.name)


def _has_channels_first(shape: Sequence[int]) -> bool:
    """Returns whether the first axis of an image, e.g. of a stack of images, holds channels."""
    is_likely = shape[0] <= _MAX_CHANNELS or (shape[0] < MIN_SIDE and shape[1] == shape[2])
    return is_likely and min(shape[1:]) >= MIN_SIDE


def _convert_leaf(leaf: _Leaf, value: Any, is_terminal: bool) -> np.ndarray:
    """Returns a canonical value, which may share the memory of the environment."""
    array, native = np.asarray(value), leaf.native
    is_image = leaf.spec.dtype == np.uint8  # Other integers would wrap.
    has_dtype = (
        array.dtype == native.dtype
        if is_image
        else array.dtype.kind in _ACCEPTED_KINDS[native.dtype.kind]
    )
    if array.shape != native.shape or not has_dtype:
        raise ValueError(
            f"its {leaf.name} is {array.dtype} {list(array.shape)}, and its spec {native.dtype} "
            f"{list(native.shape)}"
        )
    if leaf.offset is not None:
        array = array - leaf.offset
    if leaf.name == action_masks.NAME:
        return action_masks.convert(array, is_terminal)
    is_category = isinstance(native, specs.DiscreteArray | CategoryArray)
    if is_category and not ((array >= 0) & (array <= native.maximum)).all():
        start = 0 if leaf.offset is None else leaf.offset
        shown, low, high = (
            (values + start).tolist() for values in (array, 0 * array, native.maximum)
        )
        raise ValueError(f"its {leaf.name} is {shown}, and its spec has {low} to {high}")
    if is_image and array.dtype == np.bool_:
        array = array * np.uint8(255)
    return array.astype(leaf.spec.dtype, copy=False).reshape(leaf.spec.shape)


def _encode_leaf(leaf: _Leaf, value: Any, max_words: int) -> np.ndarray:
    text = value.item() if isinstance(value, np.ndarray) and not value.shape else value
    if isinstance(text, bytes):
        text = text.decode()
    if not isinstance(text, str):
        raise ValueError(f"its {leaf.name} is {type_name(value)}, and its spec a text")
    numbers = encode_text(text, max_words)
    if (words := len(numbers)) > max_words:
        raise errors.ConfigError(
            f"its {leaf.name}, {text!r}, has {words} words: use environment.text_length={words} or "
            f"more (instruction_length={words} in the suites dmlab and minigrid)"
        )
    return numbers


def encode_text(text: str, length: int) -> np.ndarray:
    """Returns for each word 1 + crc32(word) % 1000, then zeros, int32 [max(length, words)].

    Case and punctuation have no effect. Of the 57 words of MiniGrid's and BabyAI's missions "ball"
    and "fetch" share an id, and so do "reach" and "grey". No mission has one in place of the other.
    """
    numbers = [
        1 + zlib.crc32(word.encode()) % (types.VOCABULARY_SIZE - 1)
        for word in re.findall(r"\w+", text.lower())
    ]
    return np.array(numbers + [0] * (length - len(numbers)), np.int32)


def check_keys(spec: Mapping, name: str) -> None:
    """Raises `UnsupportedSpaceError` for keys other than texts, which have no common order."""
    if not all(isinstance(key, str) for key in spec):
        raise faults.UnsupportedSpaceError(
            f"its {name} has the keys {list(spec)}: use texts for all of them"
        )


def type_name(value: Any) -> str:
    """Returns a phrase like "a dict of 2 parts" for messages."""
    if isinstance(value, Mapping | tuple | list):
        return f"a {type(value).__name__} of {len(value)} parts"
    return f"an object of type {type(value).__name__}"

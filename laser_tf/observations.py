"""Specs of observations: frame stacking, zero observations, descriptions and name checks."""

import collections
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import tree
from dm_env import specs

from laser_tf import errors, types

# A subset of the characters that TensorFlow accepts in names. Keys of these characters appear
# unchanged in the signature of a policy exported for TF-Agents.
_VALID_KEY = re.compile(r"[A-Za-z0-9_./-]+")

# Key of the mask of allowed actions, bool [A], in observations of environments with such masks.
ACTION_MASK = "action_mask"


def image_spec(height: int, width: int, channels: int) -> specs.BoundedArray:
    """Returns the spec of an image: uint8 [H, W, C] from 0 to 255."""
    return specs.BoundedArray([height, width, channels], np.uint8, 0, 255, "image")


def is_image(spec: specs.Array) -> bool:
    """Returns whether a leaf is an image of any dtype. Only images are stacked."""
    return len(spec.shape) == 3


def stack_specs(observation: Any, depth: int) -> Any:
    """Stacks specs of images [H, W, C] in a nest to [H, W, depth * C], newest frame last."""

    def stack(spec: specs.Array) -> specs.Array:
        if depth == 1 or not is_image(spec):
            return spec
        *size, channels = spec.shape
        return spec.replace(shape=[*size, depth * channels])

    return tree.map_structure(stack, observation)


def action_mask(observation: Any) -> Any:
    """Returns the leaf of the action mask, or None if the observation has none."""
    return observation.get(ACTION_MASK) if isinstance(observation, Mapping) else None


def without_action_mask(observation: Any) -> Any:
    """Returns what networks read of an observation: the nest without the action mask."""
    if action_mask(observation) is None:
        return observation
    return {key: part for key, part in observation.items() if key != ACTION_MASK}


def padding_steps(spec: types.EnvironmentSpec, leading: tuple[int, ...]) -> types.EnvOutput:
    """Returns NumPy time steps of zeros with `is_first` and the leading shape `leading`."""

    def zeros(leaf: specs.Array) -> np.ndarray:
        return np.zeros([*leading, *leaf.shape], leaf.dtype)

    return types.EnvOutput(
        observation=tree.map_structure(zeros, spec.observation),
        reward=np.zeros(leading, np.float32),
        discount=np.ones(leading, np.float32),
        is_first=np.ones(leading, bool),
        previous_action=zeros(spec.action),
    )


def describe(spec: types.EnvironmentSpec) -> str:
    """Describes observations, actions and tasks in one phrase for messages."""
    leaves = [
        "/".join(map(str, (*path, ""))) + f"{leaf.dtype}{list(leaf.shape)}"
        for path, leaf in tree.flatten_with_path(spec.observation)
    ]
    tasks = f" in {spec.num_tasks} tasks" if spec.num_tasks > 1 else ""
    return f"observations {', '.join(leaves)} and actions ({describe_action(spec.action)}){tasks}"


def describe_action(spec: specs.BoundedArray) -> str:
    """Describes an action spec for messages."""
    if isinstance(spec, specs.DiscreteArray):
        return f"one of {spec.num_values} actions"
    if isinstance(spec, types.ProductSpec):
        counts = collections.Counter(map(describe_action, spec.parts))
        parts = [f"{count} x {part}" if count > 1 else part for part, count in counts.items()]
        return f"independent parts: {', '.join(parts)}"
    # A spec may have one bound for all dimensions.
    bounds = (np.broadcast_to(bound, spec.shape) for bound in (spec.minimum, spec.maximum))
    pairs = dict.fromkeys(f"[{low:g}, {high:g}]" for low, high in zip(*bounds, strict=True))
    dimensions = "dimension" if spec.shape == (1,) else "dimensions"
    return f"{spec.shape[0]} continuous {dimensions} in {' and '.join(pairs)}"


def path_name(prefix: str, path: tuple) -> str:
    """Returns the name of a leaf in the signature of a SavedModel: its path with underscores."""
    # TensorFlow derives the names of inputs in this way, but not the names of outputs.
    return "_".join(re.sub(r"\W", "_", str(part)) for part in (prefix, *path))


def check_names(observation: Any) -> None:
    """Raises ConfigError unless all leaves have valid, distinct names in a SavedModel."""
    known: dict[str, str] = {}
    for path, _ in tree.flatten_with_path(observation):
        shown = "".join(f"[{part!r}]" for part in path)
        if not all(_VALID_KEY.fullmatch(str(part)) for part in path):
            raise errors.ConfigError(
                f"observation{shown} must have keys of letters, digits and _ . / - only, as names "
                "in a SavedModel. Rename the key in the environment; weights still fit if the "
                "sorted order of the keys stays the same."
            )
        # TensorFlow ignores the case of these names.
        other = known.setdefault(path_name("", path).lower(), shown)
        if other != shown:
            raise errors.ConfigError(
                f"observation{other} and observation{shown} must differ in letters or digits, as "
                "names in a SavedModel. Rename one of them in the environment."
            )

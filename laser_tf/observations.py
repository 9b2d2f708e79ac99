"""Observations as nests of dm_env specs, of which images are stacked."""

import re
from typing import Any

import numpy as np
import tree
from dm_env import specs

from laser_tf import errors, types

# A subset of TensorFlow's names: TF-Agents' signature of an exported policy has the keys unchanged.
_KEY = re.compile(r"[A-Za-z0-9_./-]+")


def image_spec(height: int, width: int, channels: int) -> specs.BoundedArray:
    """A picture: uint8 [H, W, C] from 0 to 255."""
    return specs.BoundedArray([height, width, channels], np.uint8, 0, 255, "image")


def is_image(spec: specs.Array) -> bool:
    """Whether a leaf is a picture, of any dtype: these alone are stacked."""
    return len(spec.shape) == 3


def stacked(observation: Any, depth: int) -> Any:
    """The specs that an agent sees: images as [H, W, K * C], newest frame last.

    Args:
      observation: nest of specs of single frames.
      depth: K, frames in a stack.
    """

    def stack(spec: specs.Array) -> specs.Array:
        if depth == 1 or not is_image(spec):
            return spec
        *size, channels = spec.shape
        shape = [*size, depth * channels]
        if not isinstance(spec, specs.BoundedArray):
            return specs.Array(shape, spec.dtype, spec.name)
        minimum, maximum = (
            np.tile(np.broadcast_to(bound, spec.shape), depth)
            for bound in (spec.minimum, spec.maximum)
        )
        return specs.BoundedArray(shape, spec.dtype, minimum, maximum, spec.name)

    return tree.map_structure(stack, observation)


def blank(spec: types.EnvironmentSpec, leading: tuple[int, ...]) -> types.EnvOutput:
    """Time steps of zeros that each open an episode: NumPy arrays of leading shape `leading`."""

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
    """What an agent must fit, in words for messages."""
    leaves = [
        "/".join(map(str, (*path, ""))) + f"{leaf.dtype}{list(leaf.shape)}"
        for path, leaf in tree.flatten_with_path(spec.observation)
    ]
    action = spec.action
    actions = (
        f"{action.num_values} actions"
        if isinstance(action, specs.DiscreteArray)
        else f"{action.shape[0]} continuous actions in {_bounds(action)}"
    )
    tasks = f" in {spec.num_tasks} tasks" if spec.num_tasks > 1 else ""
    return f"observations {', '.join(leaves)} and {actions}{tasks}"


def _bounds(action: specs.BoundedArray) -> str:
    # A spec may have one bound for all of its actions.
    bounds = (np.broadcast_to(bound, action.shape) for bound in (action.minimum, action.maximum))
    pairs = zip(*bounds, strict=True)
    return " and ".join(dict.fromkeys(f"[{low:g}, {high:g}]" for low, high in pairs))


def path_name(prefix: str, path: tuple) -> str:
    """Returns the name of a leaf in a SavedModel's signature: its path with underscores."""
    # TensorFlow maps the names of a signature's inputs in this way, but not of its outputs.
    return "_".join(re.sub(r"\W", "_", str(part)) for part in (prefix, *path))


def check_names(observation: Any) -> None:
    """Checks that an exported policy can name all leaves of an observation.

    Raises:
      ValueError: If a key has other characters, or if two leaves have the same name.
    """
    known: dict[str, str] = {}
    for path, _ in tree.flatten_with_path(observation):
        shown = "".join(f"[{part!r}]" for part in path)
        if not all(_KEY.fullmatch(str(part)) for part in path):
            raise errors.ConfigError(
                f"a SavedModel cannot have a key as observation{shown}: use letters, digits and "
                "_ . / - only; rename it in the environment; weights still fit if the sorted order "
                "of the keys stays the same"
            )
        other = known.setdefault(path_name("", path).lower(), shown)  # TensorFlow ignores case here
        if other != shown:
            raise errors.ConfigError(
                f"a SavedModel has one name for observation{other} and observation{shown}: rename "
                "one of them in the environment, so that they differ in letters and digits"
            )

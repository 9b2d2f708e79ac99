"""Describes an exported policy: names, shapes, dtypes and meanings of its inputs and outputs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tree
from dm_env import specs

from laser_tf import observations, types
from laser_tf.environments import base
from laser_tf.export import portable_policy
from laser_tf.training import run_config

_STATES = {  # First part of a state's name -> meaning.
    "core": "the core's memory",
    "frames": "frames before the newest",
    "previous": "the last action, which the policy took",
}


def describe(
    policy: portable_policy.PortablePolicy,
    config: run_config.RunConfig,
    agent_steps: int,
    native: Mapping[str, base.NativeSpec],
) -> dict[str, Any]:
    """Returns the content of `policy.json` about the policy.

    `agent_steps` are those behind the weights, and `native` has the specs of each task's
    environment before their conversion.
    """
    environment = config.environment
    scales = environment.reward_scales or [1.0] * len(native)
    return {
        "agent": config.agent.name,
        "suite": environment.suite,
        "tasks": {
            task: {**describe_task(spec), "reward_scale": scale}
            for (task, spec), scale in zip(native.items(), scales, strict=True)
        },
        "trained_env_frames": agent_steps * environment.action_repeat,
        "environment": environment.protocol(),
        "action_selection": config.agent.acting_in_evaluation,
        "frame_stack": config.replay.frame_stack,
        # A nest as the environment's, with the names of inputs.
        "observation": tree.map_structure(lambda leaf: leaf.name, policy.step_signature()[0]),
        "inputs": _inputs(policy, config, native),
        "state": [
            _entry(name, signature, _STATES[name.split("_")[0]])
            for name, signature in policy.state_signature().items()
        ],
        "action": describe_action(policy.spec.action, native),
        "functions": {
            "initial_state": "batch_size -> state",
            "greedy": "observation, reward, discount, is_first, state -> action, state: the best "
            "action",
            "sample": "the same and seed -> action, state: as in evaluations, "
            f"{config.agent.acting_in_evaluation}; seed is int32 [2], a new one for each step",
            "action": "TF-Agents' time_step, policy_state -> PolicyStep: as greedy",
        },
    }


def describe_task(native: base.NativeSpec) -> dict[str, Any]:
    """Returns how actions and observations of a task's environment differ from the policy's."""
    return {
        "action": _describe_native_action(native.action),
        "observation_offsets": native.observation_offsets,
    }


def _describe_native_action(action: Any) -> dict[str, Any]:
    """Returns the facts of a leaf, or a nest of them in the order of `tree.flatten`."""
    if isinstance(action, Mapping):
        return {"dict": {key: _describe_native_action(action[key]) for key in sorted(action)}}
    if isinstance(action, tuple | list):
        return {"tuple": [_describe_native_action(part) for part in action]}
    return {
        "first": _first(action),
        "shape": list(action.shape),
        "dtype": action.dtype.name,
        "minimum": np.broadcast_to(action.minimum, action.shape).tolist(),
        "maximum": np.broadcast_to(action.maximum, action.shape).tolist(),
    }


def describe_action(
    spec: specs.BoundedArray, native: Mapping[str, base.NativeSpec]
) -> dict[str, Any]:
    """Returns the entry of the policy's action, which the tasks' environments may convert."""
    actions = [own.action for own in native.values()]
    is_nest = not all(isinstance(action, specs.Array) for action in actions)
    if is_nest or isinstance(spec, types.ProductSpec):
        meaning = "numbers of the environment's action one after the other, integers from 0; "
        meaning += "`tasks` describes that action"
    else:
        is_discrete = isinstance(spec, specs.DiscreteArray)
        units = "continuous, in the environment's units"
        meaning = "index of the environment's actions" if is_discrete else units
        if first := _common(list(map(_first, actions))):
            meaning += f", which begin with {first}"
        shape = _common([list(action.shape) for action in actions])
        if shape != list(spec.shape):
            meaning += f"; the environment gets it in the shape {shape}"
    return _entry("action", tf.TensorSpec([None, *spec.shape], spec.dtype), meaning, spec)


def _first(action: specs.BoundedArray) -> Any:
    """Returns the number, or list of numbers, that is added to a policy's action for integers."""
    if not np.issubdtype(action.dtype, np.integer):
        return 0
    return np.broadcast_to(action.minimum, action.shape).tolist()


def _common(values: list[Any]) -> Any:
    """Returns the value of all tasks, or a reference if they differ."""
    return values[0] if all(value == values[0] for value in values) else "what `tasks` says"


def _inputs(
    policy: portable_policy.PortablePolicy,
    config: run_config.RunConfig,
    native: Mapping[str, base.NativeSpec],
) -> list[dict[str, Any]]:
    observation, reward, discount, is_first = policy.step_signature()
    offsets = zip(*(own.observation_offsets for own in native.values()), strict=True)
    signatures, leaves = tree.flatten(observation), tree.flatten(policy.spec.observation)
    entries = []
    for signature, spec, of_tasks in zip(signatures, leaves, offsets, strict=True):
        meaning = _observation_meaning(spec, config, _common(list(of_tasks)))
        entries.append(_entry(signature.name, signature, meaning, spec))
    scales = config.environment.reward_scales
    scaled = f", times {list(scales)}, task by task, as in training" if scales else ""
    return [
        *entries,
        _entry("reward", reward, f"that arrived with the observation, raw{scaled}; 0 at first"),
        _entry("discount", discount, "0 where the episode (or a life) has ended, otherwise 1"),
        _entry("is_first", is_first, "whether the observation opens an episode"),
    ]


def _observation_meaning(spec: specs.Array, config: run_config.RunConfig, offset: Any) -> str:
    if observations.is_image(spec):
        depth = config.replay.frame_stack
        stacked = f", a single frame: the newest {depth} are stacked inside" if depth > 1 else ""
        return f"image of height, width and channels{stacked}; one of bool as 0 and 255"
    if isinstance(spec, types.TextSpec):
        return "words of a text, 1 + crc32(lower-case word) % 1000 each, then 0"
    if spec.dtype == np.bool_:  # Other bools are images or float vectors.
        return "mask: whether each action is allowed; it may be all false after the last step"
    if isinstance(spec, specs.DiscreteArray | types.ProductSpec):
        less = f": the environment's less {offset}" if offset else ""
        return f"category, an integer from 0{less}"
    inside = "normalised inside" if config.agent.normalise_vectors else "used as it is"
    less = f", less {offset}" if offset else ""
    return f"as the environment gives it{less}: {inside}"


def _entry(
    name: str, signature: tf.TensorSpec, meaning: str, spec: specs.Array | None = None
) -> dict[str, Any]:
    entry = {
        "name": name,
        "shape": ["batch", *signature.shape[1:]],
        "dtype": signature.dtype.name,
        "meaning": meaning,
    }
    if isinstance(spec, specs.BoundedArray):
        for bound in ("minimum", "maximum"):
            # One number if all entries have the same; texts, since JSON has no infinity.
            values = list(map(str, getattr(spec, bound).flat))
            entry[bound] = values[0] if len(set(values)) == 1 else values
    return entry

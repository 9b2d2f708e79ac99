"""What a folder with a policy says of itself: names, shapes, dtypes and meanings."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree
from dm_env import specs

from laser_tf import observations, types
from laser_tf.environments import base
from laser_tf.export import portable_policy
from laser_tf.training import run_config

_EXAMPLE = """import json
import re
import zlib

import numpy as np
import tensorflow as tf

policy = tf.saved_model.load("policy")
with open("policy/policy.json") as file:
    about = json.load(file)
inputs = [entry for entry in about["inputs"] if entry["name"].startswith("observation")]
task = next(iter(about["tasks"].values()))  # of its name, where there are several

def seen(leaf, entry, first):  # with the policy's dtype, shape and numbers
    if isinstance(leaf, str):
        words = [1 + zlib.crc32(word.encode()) % 1000 for word in re.findall(r"\\w+", leaf.lower())]
        return np.int32([words + [0] * (entry["shape"][1] - len(words))])
    numbers = np.asarray(leaf)
    if numbers.dtype == bool and entry["dtype"] == "uint8":
        numbers = numbers * 255
    numbers = np.reshape(numbers, [-1]) - first
    return np.reshape(numbers, [1, *entry["shape"][1:]]).astype(entry["dtype"])

def batch_of_one(observation):
    parts = zip(tf.nest.flatten(observation), inputs, task["observation_offsets"])
    leaves = [tf.constant(seen(*part)) for part in parts]
    return tf.nest.pack_sequence_as(observation, leaves)

def sent(action):  # with the environment's numbers, dtype, shape and bounds
    own = task["action"]
    bounds = np.array([own["minimum"], own["maximum"]], own["dtype"])
    numbers = np.reshape(action[0] + own["first"], own["shape"])
    return np.clip(numbers.astype(own["dtype"]), *bounds)[()]

state = policy.initial_state(1)  # of one environment
observation, _ = environment.reset()  # as gymnasium's
reward, discount, is_first, done = 0.0, 1.0, True, False
while not done:
    numbers = [np.float32([reward]), np.float32([discount]), np.array([is_first])]
    action, state = policy.greedy(batch_of_one(observation), *numbers, state)
    observation, reward, terminated, truncated, _ = environment.step(sent(action))
    discount, is_first, done = 1.0 - terminated, False, terminated or truncated
"""

_STATE = (
    "The state is a dictionary: begin with `initial_state(batch_size)` and pass on what each call "
    "returns. Where `is_first` is true, an environment's part of it starts again."
)
_SIGNATURES = (
    "Each is a signature for servers, too; tensors of the state are called `state_<name>` there.\n"
)


def describe(
    policy: portable_policy.PortablePolicy,
    config: run_config.RunConfig,
    agent_steps: int,
    own: Mapping[str, base.NativeSpec],
) -> dict[str, Any]:
    """What `policy.json` holds.

    Args:
      policy: that is exported.
      config: of its run.
      agent_steps: that it has learnt from.
      own: what each task's environment itself takes and shows.
    """
    environment = config.environment
    return {
        "agent": config.agent.kind,
        "suite": environment.suite,
        "tasks": {task: _task(spec) for task, spec in own.items()},
        "trained_env_frames": agent_steps * environment.action_repeat,
        "environment": environment.protocol(),
        "frame_stack": config.replay.frame_stack,
        "inputs": _inputs(policy, config, [spec.observation_offsets for spec in own.values()]),
        "state": [
            _entry(name, signature, _state_meaning(name))
            for name, signature in policy.state_signature().items()
        ],
        "action": _action(policy.spec.action, [spec.action for spec in own.values()]),
        "functions": {
            "initial_state": "batch_size -> state",
            "greedy": "observation, reward, discount, is_first, state -> action, state: the best "
            "action",
            "sample": "the same and seed -> action, state: as in evaluations, "
            f"{config.agent.acting_in_evaluation}; seed is int32 [2], a new one for each step",
            "action": "TF-Agents' time_step, policy_state -> PolicyStep: as greedy",
        },
    }


def _inputs(
    policy: portable_policy.PortablePolicy,
    config: run_config.RunConfig,
    observation_offsets: Sequence[Sequence[Any]],
) -> list[dict[str, Any]]:
    step = policy.step_signature()
    leaves = zip(
        tree.flatten(step.observation),
        tree.flatten(policy.spec.observation),
        zip(*observation_offsets, strict=True),
        strict=True,
    )
    scales = config.environment.reward_scales
    scaled = f", times {list(scales)}, task by task, as in training" if scales else ""
    return [
        *(
            _entry(s.name, s, _observation_meaning(spec, config, _joint(firsts)), spec)
            for s, spec, firsts in leaves
        ),
        _entry(
            "reward", step.reward, f"that arrived with the observation, raw{scaled}; 0 at first"
        ),
        _entry("discount", step.discount, "0 where the episode (or a life) has ended, otherwise 1"),
        _entry("is_first", step.is_first, "whether the observation opens an episode"),
    ]


def _observation_meaning(spec: specs.Array, config: run_config.RunConfig, first: Any) -> str:
    if observations.is_image(spec):
        depth = config.replay.frame_stack
        stacked = f", a single frame: the newest {depth} are stacked inside" if depth > 1 else ""
        return f"image of height, width and channels{stacked}; one of bool as 0 and 255"
    if isinstance(spec, types.TextSpec):
        return "words of a text, 1 + crc32(lower-case word) % 1000 each, then 0"
    if isinstance(spec, specs.DiscreteArray):
        return "a number of a kind, from 0" + (f": the environment's less {first}" if first else "")
    inside = "normalised inside" if config.agent.normalise_vectors else "used as it is"
    less = f", less {first}" if first else ""
    return f"as the environment gives it{less}: {inside}"


def _state_meaning(name: str) -> str:
    kind = {"core": "the core's memory", "frames": "frames before the newest"}
    return kind.get(name.split("_")[0], "the last action, which the policy took")


def _task(own: base.NativeSpec) -> dict[str, Any]:
    action = own.action
    return {
        "action": {
            "first": _first(action),
            "shape": list(action.shape),
            "dtype": action.dtype.name,
            "minimum": np.broadcast_to(action.minimum, action.shape).tolist(),
            "maximum": np.broadcast_to(action.maximum, action.shape).tolist(),
        },
        "observation_offsets": own.observation_offsets,
    }


def _first(action: specs.BoundedArray) -> int:
    """What a policy's action is increased by: where the environment's own are integers."""
    return int(action.minimum) if np.issubdtype(action.dtype, np.integer) else 0


def _joint(of_tasks: Iterable[Any]) -> Any:
    """What is alike in all tasks, or where to read it."""
    first, *others = of_tasks
    return first if all(other == first for other in others) else "what `tasks` says"


def _action(spec: specs.BoundedArray, own: Sequence[specs.BoundedArray]) -> dict[str, Any]:
    signature = tf.TensorSpec([None, *spec.shape], spec.dtype)
    is_discrete = isinstance(spec, specs.DiscreteArray)
    first, shape = _joint(map(_first, own)), _joint(list(action.shape) for action in own)
    units = "continuous, in the environment's units"
    meaning = "index of the environment's actions" if is_discrete else units
    meaning += f", which begin with {first}" if first else ""
    shaped = f"; the environment gets it in the shape {shape}"
    meaning += shaped if shape != list(spec.shape) else ""
    return _entry("action", signature, meaning, spec)


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
        # One number where all entries have the same; no JSON has infinity.
        for bound in ("minimum", "maximum"):
            values = getattr(spec, bound)
            same = values.ndim == 0 or values.size and (values == values.flat[0]).all()
            entry[bound] = str(values.flat[0]) if same else list(map(str, values.flat))
    return entry


def page(about: dict[str, Any]) -> str:
    """The same for people, in Markdown, with an example.

    Args:
      about: from `describe`.
    """
    environment = ", ".join(f"{key} {value}" for key, value in about["environment"].items())
    lines = (
        f"# A policy for {', '.join(about['tasks'])}",
        "",
        f"A TensorFlow SavedModel, trained by {about['agent']} on {about['suite']} for "
        f"{about['trained_env_frames']:,} env frames. It needs TensorFlow 2.15 and nothing else. "
        "`policy.json` holds the same facts.",
        "",
        f"```python\n{_EXAMPLE}```",
        "",
        f"The environment is to be as in training: {environment}.",
        *_table("What goes in", about["inputs"]),
        *_table("What comes out", [about["action"]]),
        *_table("The state", about["state"]),
        "",
        _STATE,
        "",
        "## Functions",
        "",
        *(f"- `{name}`: {meaning}" for name, meaning in about["functions"].items()),
        "",
        _SIGNATURES,
    )
    return "\n".join(lines)


def _table(title: str, entries: list[dict[str, Any]]) -> list[str]:
    rows = [
        f"| {entry['name']} | {entry['dtype']} [{', '.join(map(str, entry['shape']))}] | "
        + entry["meaning"]
        + (f"; {entry['minimum']} to {entry['maximum']}" if "minimum" in entry else "")
        + " |"
        for entry in entries
    ]
    return ["", f"## {title}", "", "| name | dtype and shape | meaning |", "|---|---|---|", *rows]

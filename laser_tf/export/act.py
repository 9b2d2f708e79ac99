"""Runs an exported policy in an environment of gymnasium, with TensorFlow and gymnasium alone.

python act.py CartPole-v1

`launch.export` copies this file into the directory of the policy.
"""

import json
import pathlib
import re
import sys
import zlib
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf


def to_policy(leaf: Any, entry: dict[str, Any], offset: Any) -> np.ndarray:
    """Converts a part of an observation to a batch of one for the policy.

    Args:
      leaf: Part of an observation.
      entry: Its entry in `inputs` of `policy.json`.
      offset: Its entry in `observation_offsets`.
    """
    if isinstance(leaf, str):  # Numbers of words, then zeros.
        words = [1 + zlib.crc32(word.encode()) % 1000 for word in re.findall(r"\w+", leaf.lower())]
        return np.int32([words + [0] * (entry["shape"][1] - len(words))])
    numbers = np.asarray(leaf)
    if numbers.dtype == bool and entry["dtype"] == "uint8":
        numbers = numbers * 255
    numbers = np.reshape(numbers, [-1]) - offset
    return np.reshape(numbers, [1, *entry["shape"][1:]]).astype(entry["dtype"])


def to_environment(action: np.ndarray, own: dict[str, Any]) -> Any:
    """Converts an action of the policy to the environment's structure, numbers, dtype and bounds.

    Args:
      action: Action of one environment.
      own: `action` of the task in `policy.json`: a leaf, or a nest of leaves.
    """
    return _take(list(np.reshape(action, [-1])), own)


def _take(numbers: list[Any], own: dict[str, Any]) -> Any:
    """Converts the first numbers, which it removes, to a leaf or nest."""
    if "tuple" in own:
        return tuple(_take(numbers, part) for part in own["tuple"])
    if "dict" in own:
        return {key: _take(numbers, part) for key, part in own["dict"].items()}
    bounds = np.array([own["minimum"], own["maximum"]], own["dtype"])
    taken = [numbers.pop(0) for _ in range(bounds[0].size)]
    shifted = np.reshape(taken, own["shape"]) + np.array(own["first"])
    return np.clip(shifted.astype(own["dtype"]), *bounds)[()]


def run(folder: pathlib.Path, environment: gymnasium.Env, episodes: int, name: str) -> list[float]:
    """Runs episodes with greedy actions and returns their returns.

    Args:
      folder: Directory of the policy.
      environment: Environment as in training.
      episodes: Number of episodes.
      name: Name of the task in `policy.json`.
    """
    policy = tf.saved_model.load(str(folder))
    about = json.loads((folder / "policy.json").read_text())
    inputs = [entry for entry in about["inputs"] if entry["name"].startswith("observation")]
    task = about["tasks"][name]
    returns = []
    state = policy.initial_state(1)  # Of one environment; `is_first` resets it.
    for _ in range(episodes):
        observation, _ = environment.reset()
        reward, discount, is_first, is_over, episode_return = 0.0, 1.0, True, False, 0.0
        while not is_over:
            parts = tf.nest.flatten(observation), inputs, task["observation_offsets"]
            leaves = [tf.constant(to_policy(*part)) for part in zip(*parts, strict=True)]
            batch = tf.nest.pack_sequence_as(observation, leaves)
            numbers = [np.float32([reward]), np.float32([discount]), np.array([is_first])]
            actions, state = policy.greedy(batch, *numbers, state)
            action = to_environment(actions[0].numpy(), task["action"])
            observation, reward, terminated, truncated, _ = environment.step(action)
            discount, is_first, is_over = 1.0 - terminated, False, terminated or truncated
            episode_return += float(reward)
        returns.append(episode_return)
    return returns


if __name__ == "__main__":
    task_name = sys.argv[1]
    directory = pathlib.Path(__file__).parent
    print(run(directory, gymnasium.make(task_name), episodes=10, name=task_name))

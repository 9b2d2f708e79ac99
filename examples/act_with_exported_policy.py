"""Plays an environment of gymnasium's with a policy that launch.export wrote, by TensorFlow alone.

python examples/act_with_exported_policy.py policy CartPole-v1
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


def seen(leaf: Any, entry: dict[str, Any], first: Any) -> np.ndarray:
    """A part of an observation as the policy sees it, a batch of one counted from `first`."""
    if isinstance(leaf, str):  # numbers of words, then zeros
        words = [1 + zlib.crc32(word.encode()) % 1000 for word in re.findall(r"\w+", leaf.lower())]
        return np.int32([words + [0] * (entry["shape"][1] - len(words))])
    numbers = np.asarray(leaf)
    if numbers.dtype == bool and entry["dtype"] == "uint8":
        numbers = numbers * 255
    numbers = np.reshape(numbers, [-1]) - first
    return np.reshape(numbers, [1, *entry["shape"][1:]]).astype(entry["dtype"])


def sent(action: np.ndarray, own: dict[str, Any]) -> Any:
    """A policy's action with the environment's numbers, dtype, shape and bounds."""
    bounds = np.array([own["minimum"], own["maximum"]], own["dtype"])
    numbers = np.reshape(action + own["first"], own["shape"])
    return np.clip(numbers.astype(own["dtype"]), *bounds)[()]


def play(folder: pathlib.Path, environment: gymnasium.Env, episodes: int, name: str) -> list[float]:
    """Returns of episodes played greedily; `name` is the task's in `policy.json`."""
    policy = tf.saved_model.load(str(folder))
    about = json.loads((folder / "policy.json").read_text())
    inputs = [entry for entry in about["inputs"] if entry["name"].startswith("observation")]
    task = about["tasks"][name]
    returns = []
    for _ in range(episodes):
        state = policy.initial_state(1)  # of one environment; anew at each episode, or carried on
        observation, _ = environment.reset()
        reward, discount, is_first, over, total = 0.0, 1.0, True, False, 0.0
        while not over:
            parts = tf.nest.flatten(observation), inputs, task["observation_offsets"]
            leaves = [tf.constant(seen(*part)) for part in zip(*parts, strict=True)]
            batch = tf.nest.pack_sequence_as(observation, leaves)
            numbers = [np.float32([reward]), np.float32([discount]), np.array([is_first])]
            action, state = policy.greedy(batch, *numbers, state)
            chosen = sent(action[0].numpy(), task["action"])
            observation, reward, terminated, truncated, _ = environment.step(chosen)
            discount, is_first, over = 1.0 - terminated, False, terminated or truncated
            total += float(reward)
        returns.append(total)
    return returns


if __name__ == "__main__":
    path, task = sys.argv[1:]
    print(play(pathlib.Path(path), gymnasium.make(task), episodes=10, name=task))

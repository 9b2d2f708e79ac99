"""Plays an environment of gymnasium's with a policy that launch.export wrote, by TensorFlow alone.

python examples/act_with_exported_policy.py policy CartPole-v1
"""

import json
import pathlib
import sys

import gymnasium
import numpy as np
import tensorflow as tf


def play(folder: pathlib.Path, environment: gymnasium.Env, episodes: int) -> list[float]:
    """Returns of episodes played greedily."""
    policy = tf.saved_model.load(str(folder))
    about = json.loads((folder / "policy.json").read_text())
    inputs = [entry for entry in about["inputs"] if entry["name"].startswith("observation")]
    sent = about["action"]["environment"]  # from which number its actions count, and their shape
    returns = []
    for _ in range(episodes):
        state = policy.initial_state(1)  # of one environment; anew at each episode, or carried on
        observation, _ = environment.reset()
        reward, discount, is_first, over, total = 0.0, 1.0, True, False, 0.0
        while not over:
            leaves = [
                tf.constant(np.reshape(leaf, [1, *entry["shape"][1:]]).astype(entry["dtype"]))
                for leaf, entry in zip(tf.nest.flatten(observation), inputs, strict=True)
            ]
            batch = tf.nest.pack_sequence_as(observation, leaves)
            numbers = [np.float32([reward]), np.float32([discount]), np.array([is_first])]
            action, state = policy.greedy(batch, *numbers, state)
            chosen = np.reshape(action[0] + sent["first"], sent["shape"])[()]
            observation, reward, terminated, truncated, _ = environment.step(chosen)
            discount, is_first, over = 1.0 - terminated, False, terminated or truncated
            total += float(reward)
        returns.append(total)
    return returns


if __name__ == "__main__":
    name, task = sys.argv[1:]
    print(play(pathlib.Path(name), gymnasium.make(task), episodes=10))

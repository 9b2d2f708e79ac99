"""Plays an environment of gymnasium's with a policy that launch.export wrote, by TensorFlow alone.

python examples/act_with_exported_policy.py policy CartPole-v1
"""

import sys
from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf


def play(policy: Any, environment: gymnasium.Env, episodes: int) -> list[float]:
    """Returns of episodes played greedily."""
    returns = []
    for _ in range(episodes):
        state = policy.initial_state(1)  # of one environment; anew at each episode, or carried on
        observation, _ = environment.reset()
        reward, discount, is_first, over, total = 0.0, 1.0, True, False, 0.0
        while not over:
            batch = tf.nest.map_structure(lambda leaf: tf.constant(leaf)[None], observation)
            numbers = [np.float32([reward]), np.float32([discount]), np.array([is_first])]
            action, state = policy.greedy(batch, *numbers, state)
            observation, reward, terminated, truncated, _ = environment.step(action[0].numpy())
            discount, is_first, over = 1.0 - terminated, False, terminated or truncated
            total += float(reward)
        returns.append(total)
    return returns


if __name__ == "__main__":
    folder, task = sys.argv[1:]
    print(play(tf.saved_model.load(folder), gymnasium.make(task), episodes=10))

"""Recurrent LASER on a BabyAI task whose text says what to do; needs `make minigrid`.

Tasks: MiniGrid's and BabyAI's ids, such as BabyAI-GoToRedBlueBall-v0 or BabyAI-GoToLocal-v0.
"""

import dataclasses

import ml_collections

from configs import laser_tmaze
from laser_tf.environments import minigrid


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_tmaze`."""
    config = laser_tmaze.get_config()
    config.agent.update({"torso": "minatar", "core_size": 128, "core_memory_span": 0})
    # Not a MiniGridConfig: that asks the package for its tasks, which may not be installed yet.
    defaults = {field.name: field.default for field in dataclasses.fields(minigrid.MiniGridConfig)}
    config.environment = defaults | {
        "task": "BabyAI-GoToRedBlueBall-v0",
        "instruction_length": 16,  # words
        "max_frames_per_episode": 500,  # env frames
    }
    config.replay.update({"unroll_length": 20})  # agent steps
    return config

"""Recurrent LASER on a BabyAI task whose text says what to do; needs `make minigrid`.

Tasks: MiniGrid's and BabyAI's ids, such as BabyAI-GoToRedBlueBall-v0 or BabyAI-GoToLocal-v0.
"""

import ml_collections

from configs import laser_tmaze


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_tmaze`."""
    config = laser_tmaze.get_config()
    config.agent.update({"torso": "minatar", "core_size": 128, "core_memory_span": 0})
    config.environment.update(
        {
            "suite": "minigrid",
            "task": "BabyAI-GoToRedBlueBall-v0",
            "instruction_length": 16,  # words
            "max_frames_per_episode": 500,  # env frames
        }
    )
    config.replay.update({"unroll_length": 20})  # agent steps
    return config

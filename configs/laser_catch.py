"""LASER on catch: seconds on a laptop. For first tries and tests."""

import dataclasses

import ml_collections

from configs import laser_atari
from laser_tf.environments import catch


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_atari`."""
    config = laser_atari.get_config()
    config.agent.update({"torso": "flat", "normalise_images": False})
    config.environment = dataclasses.asdict(catch.CatchConfig(num_envs=16))
    config.replay.update(
        {
            "unroll_length": 10,  # agent steps; an episode has 9 and its reset
            "frame_stack": 1,  # frames
            "batch_size": 16,  # unrolls
            "replay_fraction": 0.75,
            "capacity": 20_000,  # agent steps
            "queue_capacity": 16,  # unrolls
        }
    )
    config.learner.update(
        {
            "learning_rate": 3e-3,
            "rmsprop_epsilon": 1e-5,
            "compute_dtype": "float32",  # the network is too small to gain from another
        }
    )
    config.run.update({"env_frames": 100_000, "metrics_seconds": 2.0})
    return config

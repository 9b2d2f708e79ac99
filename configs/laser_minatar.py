"""LASER on a MinAtar game: minutes on a laptop.

Tasks: asterix, breakout, freeway, seaquest, space_invaders.
"""

import dataclasses

import ml_collections

from configs import laser_atari
from laser_tf.environments import minatar


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_atari`."""
    config = laser_atari.get_config()
    config.agent.update({"torso": "minatar", "normalise_images": False})
    config.environment = dataclasses.asdict(
        minatar.MinAtarConfig(
            task="breakout",
            num_envs=32,
            sticky_actions=0.1,  # probability; Young and Tian 2019, section 2
        )
    )
    config.replay.update(
        {
            "frame_stack": 1,  # frames
            # One fresh unroll an update: see docs/results/minatar.md.
            "batch_size": 8,  # unrolls
            "replay_fraction": 0.875,  # of the 1/2, 3/4 and 7/8 that LASER considers
            "capacity": 100_000,  # agent steps
            "queue_capacity": 32,  # unrolls
        }
    )
    config.learner.update(
        {
            "learning_rate": 1e-3,
            "rmsprop_epsilon": 1e-5,
            "compute_dtype": "float32",  # the network is too small to gain from another
        }
    )
    config.run.update({"env_frames": 1_000_000, "evaluation_episodes": 100})
    return config

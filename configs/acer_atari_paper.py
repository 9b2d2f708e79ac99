"""ACER on an Atari game at the paper's size (Wang et al. 2017, section 4), for accelerators."""

import ml_collections

from configs import acer_atari


def get_config() -> ml_collections.ConfigDict:
    """What differs from `acer_atari`. Section numbers are ACER's."""
    config = acer_atari.get_config()
    config.agent.update(
        {
            "torso": "nature",  # section 4: three convolutions and a dense layer of 512
            "center_observation": False,  # the paper does not
        }
    )
    config.environment.num_envs = 16  # section 4: threads
    config.replay.update(
        {
            # Section 4: one trajectory an update, of 16 threads that do not wait for one another.
            "batch_size": 16,
            "capacity": 800_000,  # agent steps; section 4: 50,000 of each of 16 threads
            "queue_capacity": 32,  # unrolls
        }
    )
    config.learner.update(
        {
            "learning_rate": 7e-4,  # A3C (Mnih et al. 2016); section 4 prints none
            "rmsprop_epsilon": 0.1,  # A3C's
            "gradient_clip": 40.0,  # A3C's
        }
    )
    # Frames: figure 1's axis ends there.
    config.run.update({"env_frames": 200_000_000, "evaluation_episodes": 200})
    return config

"""ACER on an Atari game, for two CPU cores, with the paper's numbers for the algorithm.

Sized for two CPU cores are the network, the number of games and the budget; see `acer_atari_paper`.
Section and algorithm numbers are ACER's (Wang et al. 2017).
"""

import dataclasses

import ml_collections

from configs import laser_atari
from laser_tf.agents import acer_config


def get_config() -> ml_collections.ConfigDict:
    """The games of `laser_atari`, learned by ACER with the same network."""
    config = laser_atari.get_config()
    config.agent = dataclasses.asdict(
        acer_config.AcerConfig(
            torso="shallow",  # as `laser_atari`'s
            center_observation=True,  # its results were made so, see docs/results/images.md
            discount=0.99,  # section 4
            reward_clip="unit",  # A3C, whose preprocessing section 4 takes
            entropy_cost=0.001,  # section 4
            truncation=10.0,  # c; section 4
            delta=1.0,  # section 4
            average_decay=0.99,  # alpha; section 4
        )
    )
    config.replay.update(
        {
            "unroll_length": 20,  # agent steps, k; section 4
            "batch_size": 4,  # unrolls; online, and as many replayed ones
            "replay_fraction": 0.0,
            "replay_ratio": 4.0,  # replayed batches after an online one; section 4
            "capacity": 50_000,  # agent steps; section 4 has 50,000 frames a thread
        }
    )
    config.learner.update(
        {
            "learning_rate": 6e-4,
            "learning_rate_schedule": "constant",  # section 4
        }
    )
    return config

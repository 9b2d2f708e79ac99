"""ACER on a MinAtar game: minutes on a laptop.

Section and algorithm numbers are ACER's (Wang et al. 2017).
"""

import dataclasses

import ml_collections

from configs import laser_minatar
from laser_tf.agents import acer_config


def get_config() -> ml_collections.ConfigDict:
    """The games of `laser_minatar`, learned by ACER with the same network."""
    config = laser_minatar.get_config()
    config.agent = dataclasses.asdict(
        acer_config.AcerConfig(
            torso="minatar",
            discount=0.99,  # section 4
            reward_clip="unit",  # as LASER's
            entropy_cost=0.01,  # as LASER's; the paper's 0.001 is Atari's
            truncation=10.0,  # section 4
            delta=1.0,  # section 4
            average_decay=0.99,  # section 4
        )
    )
    config.replay.update(
        {
            "unroll_length": 20,  # agent steps; section 4
            "batch_size": 4,  # unrolls; online, and as many replayed ones
            "replay_fraction": 0.0,
            "replay_ratio": 4.0,  # replayed batches after an online one; section 4
            "capacity": 100_000,  # agent steps
        }
    )
    config.learner.learning_rate_schedule = "constant"  # section 4
    return config

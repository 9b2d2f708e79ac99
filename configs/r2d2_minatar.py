"""R2D2 on a MinAtar game: minutes on a laptop."""

import dataclasses

import ml_collections

from configs import laser_minatar
from laser_tf.agents import r2d2_config


def get_config() -> ml_collections.ConfigDict:
    """The games of `laser_minatar`, learned by R2D2 with a small network."""
    config = laser_minatar.get_config()
    config.agent = dataclasses.asdict(
        r2d2_config.R2D2Config(
            torso="minatar",
            core="lstm",
            core_size=128,
            hidden_units=128,
            discount=0.99,
            n_steps=5,  # section 2.3
            target_period=500,  # learner updates; the paper's 2,500 are of a far longer run
        )
    )
    config.replay.update(
        {
            "unroll_length": 20,  # agent steps
            "sequence_length": 40,  # agent steps
            "sequence_overlap": 20,  # agent steps, half of them: section 2.3
            "burn_in": 20,  # agent steps
            "batch_size": 16,  # sequences
            "steps_per_update": 40,  # agent steps an update: each is learned from 16 times
            "warm_up": 10_000,  # agent steps
            "capacity": 200_000,  # agent steps
            "queue_capacity": 32,  # unrolls
            "core_state": "stored",
            "priority_exponent": 0.9,  # table 2
            "importance_exponent": 0.6,  # table 2
        }
    )
    config.learner.update(
        {
            "optimizer": "adam",
            "learning_rate": 5e-4,
            "learning_rate_schedule": "constant",
            "adam_epsilon": 1e-3,  # table 2
        }
    )
    return config

"""R2D2 on an Atari game, for two CPU cores."""

import dataclasses

import ml_collections

from configs import laser_atari
from laser_tf.agents import r2d2_config


def get_config() -> ml_collections.ConfigDict:
    """The games of `laser_atari`, learned by R2D2 with a small network and short sequences."""
    config = laser_atari.get_config()
    config.agent = dataclasses.asdict(
        r2d2_config.R2D2Config(
            torso="shallow",  # IMPALA's: a third of the DQN torso's arithmetic
            center_observation=True,  # see docs/results/images.md
            core="lstm",
            core_size=128,
            hidden_units=128,
            discount=0.99,
            n_steps=5,  # section 2.3
            target_period=250,  # learner updates
        )
    )
    config.environment.update({"num_envs": 16, "life_loss_is_end": False})
    config.replay.update(
        {
            "unroll_length": 10,  # agent steps
            "sequence_length": 20,  # agent steps
            "sequence_overlap": 10,  # agent steps, half of them: section 2.3
            "burn_in": 10,  # agent steps
            "batch_size": 16,  # sequences
            "steps_per_update": 80,  # agent steps an update: each is learned from 4 times
            "warm_up": 20_000,  # agent steps
            "capacity": 100_000,  # agent steps
            "queue_capacity": 16,  # unrolls
            "core_state": "stored",
            "priority_exponent": 0.9,  # table 2
            "importance_exponent": 0.6,  # table 2
        }
    )
    config.learner.update(
        {
            "optimizer": "adam",
            "learning_rate": 3e-4,
            "learning_rate_schedule": "constant",
            "adam_epsilon": 1e-3,  # table 2
            "gradient_clip": 40.0,  # Ape-X
        }
    )
    config.run.env_frames = 14_000_000  # before action repeat; an hour and a half
    return config

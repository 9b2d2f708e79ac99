"""Reactor on an Atari game, for two CPU cores.

Section numbers are Reactor's (Gruslys et al. 2018); the paper's numbers are in
`reactor_atari_paper`.
"""

import dataclasses

import ml_collections

from configs import laser_atari
from laser_tf.agents import reactor_config


def get_config() -> ml_collections.ConfigDict:
    """The games of `laser_atari`, learned by Reactor with the same torso, without cores."""
    config = laser_atari.get_config()
    config.agent = dataclasses.asdict(
        reactor_config.ReactorConfig(
            torso="shallow",  # as `laser_atari`'s
            center_observation=True,  # its results were made so, see docs/results/images.md
            core="none",  # stacked frames show what moves; a core's steps take turns on a CPU
            hidden_units=128,
            discount=0.99,  # DQN
            reward_clip="unit",  # DQN
            bins=51,  # C51
            v_min=-10.0,  # C51; a fresh critic says the middle of both, which has to be near 0
            v_max=10.0,  # C51
            entropy_cost=0.005,
            target_period=60,  # learner updates; the paper's 1,000 are of a far longer run
        )
    )
    config.environment.update({"num_envs": 16})
    config.replay.update(
        {
            "unroll_length": 16,  # agent steps
            "frame_stack": 4,  # frames
            "sequence_length": 32,  # agent steps between 33 frames; section 3.4
            "sequence_overlap": 16,  # agent steps
            "batch_size": 4,  # sequences; section 3.4
            "steps_per_update": 24,  # agent steps an update: each is learned from 5 times
            "warm_up": 20_000,  # agent steps
            "capacity": 100_000,  # agent steps
            "queue_capacity": 16,  # unrolls
            "core_state": "stored",
            "priorities": "contextual",  # section 3.3, appendix 6.3
            "priority_exponent": 1.0,  # section 3.3
            "importance_exponent": 1.0,  # section 3.3
        }
    )
    config.learner.update(
        {
            "optimizer": "adam",  # section 3.4.1
            "learning_rate": 3e-4,
            "learning_rate_schedule": "constant",
            "adam_beta1": 0.0,  # section 3.4.1: zero momentum
            "adam_epsilon": 1e-5,
        }
    )
    return config

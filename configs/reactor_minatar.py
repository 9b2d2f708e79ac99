"""Reactor on a MinAtar game: minutes on a laptop.

Section numbers are Reactor's (Gruslys et al. 2018).
"""

import dataclasses

import ml_collections

from configs import laser_minatar
from laser_tf.agents import reactor_config


def get_config() -> ml_collections.ConfigDict:
    """The games of `laser_minatar`, learned by Reactor without cores."""
    config = laser_minatar.get_config()
    config.agent = dataclasses.asdict(
        reactor_config.ReactorConfig(
            torso="minatar",
            core="none",  # boards show what moves, and where to
            hidden_units=64,
            discount=0.99,  # DQN
            reward_clip="unit",  # DQN
            bins=51,  # C51
            v_min=-10.0,  # C51; a fresh critic says the middle of both, which has to be near 0
            v_max=10.0,  # C51
            entropy_cost=0.05,  # ours; see docs/agents/reactor.md: A3C's 0.01 acts by one action
            target_period=250,  # learner updates; the paper's 1,000 are of a far longer run
        )
    )
    config.replay.update(
        {
            "unroll_length": 16,  # agent steps
            "sequence_length": 32,  # agent steps between 33 frames; section 3.4
            "sequence_overlap": 16,  # agent steps
            "batch_size": 16,  # sequences
            "steps_per_update": 32,  # agent steps an update: each is learned from 16 times
            "warm_up": 5_000,  # agent steps
            "capacity": 200_000,  # agent steps
            "queue_capacity": 32,  # unrolls
            "core_state": "stored",
            "priorities": "contextual",  # section 3.3, appendix 6.3
            "priority_exponent": 1.0,  # section 3.3
            "importance_exponent": 1.0,  # section 3.3
        }
    )
    config.learner.update(
        {
            "optimizer": "adam",  # section 3.4.1
            "learning_rate": 5e-4,
            "learning_rate_schedule": "constant",
            "adam_beta1": 0.0,  # section 3.4.1: zero momentum
            "adam_epsilon": 1e-5,
        }
    )
    return config

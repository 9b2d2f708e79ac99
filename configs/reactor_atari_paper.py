"""Reactor on an Atari game with the paper's numbers (Gruslys et al. 2018), for accelerators.

Section and table numbers are Reactor's. What it takes from DQN's pipeline (section 4.1) and does
not print is DQN's (Mnih et al. 2015).
"""

import dataclasses

import ml_collections

from configs import laser_atari
from laser_tf.agents import reactor_config


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_atari`."""
    config = laser_atari.get_config()
    config.agent = dataclasses.asdict(
        reactor_config.ReactorConfig(
            torso="reactor",  # table 3
            core="lstm",  # table 3; of policy and critic each
            core_size=128,  # table 3
            hidden_units=32,  # table 3
            uniform_share=0.01,  # section 6.4
            discount=0.99,  # DQN
            reward_clip="unit",  # DQN
            bins=51,  # C51 (Bellemare et al. 2017)
            v_min=-10.0,  # C51
            v_max=10.0,  # C51
            lambda_=1.0,  # section 4.1
            policy_gradient="beta_loo",  # section 3.1
            truncation=1.0,  # c; section 4.1: beta is 1
            entropy_cost=0.01,  # A3C (Mnih et al. 2016), whose method section 6.5 names
            target_period=1_000,  # learner updates; section 4.1
        )
    )
    config.environment.update(
        {
            "num_envs": 10,  # section 4.1: workers
            "num_threads": 0,
        }
    )
    config.replay.update(
        {
            "unroll_length": 16,  # agent steps
            "frame_stack": 1,  # table 3: cores remember the frames before
            "sequence_length": 32,  # agent steps between 33 frames; section 3.4
            "sequence_overlap": 16,  # agent steps
            "batch_size": 4,  # sequences; section 3.4
            "steps_per_update": 5,  # agent steps; section 3.4: 4 to 6
            "warm_up": 50_000,  # agent steps; DQN
            "capacity": 1_000_000,  # agent steps; DQN
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
            "learning_rate": 5e-5,  # section 3.4.1
            "learning_rate_schedule": "constant",
            "adam_beta1": 0.0,  # section 3.4.1: zero momentum
            "adam_epsilon": 1e-8,  # TensorFlow's
        }
    )
    config.run.update({"env_frames": 200_000_000, "evaluation_episodes": 200})  # section 4.1
    return config

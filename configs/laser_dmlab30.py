"""LASER's own setting on DMLab-30: one agent, thirty tasks. Needs `deepmind_lab` and a cluster.

The paper's text and figures differ in the share of replay: 32 and 128 unrolls a batch ("chosen as
above", section 5.1) are 80%, figures 2 and 3 have 87.5%. The text's stand here; the figures' are
--config.replay.batch_size=256 --config.replay.replay_fraction=0.875 with 32 online unrolls.
"""

import dataclasses

import ml_collections

from configs import laser_atari
from laser_tf.agents import laser_config
from laser_tf.environments import dmlab


def get_config() -> ml_collections.ConfigDict:
    """The paper's numbers, and those of the papers that it builds on."""
    config = laser_atari.get_config()
    config.agent = dataclasses.asdict(
        laser_config.LaserConfig(
            torso="deep",  # IMPALA, figure 3 right
            core="preco_lstm",  # LASER, section 5.1
            core_size=256,  # IMPALA, figure 3
            discount=0.99,  # IMPALA, DMLab
            reward_clip="none",  # Hessel et al. 2019: PopArt instead
            baseline_cost=0.5,  # IMPALA
            entropy_cost=2e-3,  # within IMPALA's 5e-5 to 1e-2, drawn by a sweep there
            popart=True,
            popart_step=3e-4,  # Hessel et al. 2019
            pixel_control_cost=2e-3,  # ours, per cell; the paper prints none
            pixel_control_cell=4,  # UNREAL
        )
    )
    config.environment = dataclasses.asdict(
        dmlab.DMLabConfig(
            task="all",
            num_envs=5,  # of each level; IMPALA, section 5.3.1: 150 actors
            action_repeat=4,  # env frames an agent step; IMPALA, DMLab
            instruction_length=16,  # words
        )
    )
    config.replay.update(
        {
            "unroll_length": 79,  # agent steps; LASER, section 5.1
            "frame_stack": 1,  # frames
            "batch_size": 160,  # 32 online and 128 replayed unrolls; LASER, section 5.1
            "replay_fraction": 0.8,
            "capacity": 10_000_000,  # agent steps; LASER, figure 2
            "queue_capacity": 64,  # unrolls
            "core_state": "recomputed",  # LASER, section 5.1
        }
    )
    config.learner.update(
        {
            "learning_rate": 3e-4,  # within IMPALA's 5e-6 to 5e-3, drawn by a sweep there
            "learning_rate_schedule": "linear",  # IMPALA
            "rmsprop_epsilon": 0.1,  # LASER, section 5.1
            "gradient_clip": 40.0,  # global norm; IMPALA. LASER: "no clipping", of Atari alone
        }
    )
    # Frames: LASER, table 1.
    config.run.update({"env_frames": 10_000_000_000, "replay_checkpoint_minutes": 120.0})
    return config

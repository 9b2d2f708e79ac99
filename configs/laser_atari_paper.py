"""LASER's own Atari setting (Schmitt et al. 2020, section 5.1), for accelerators."""

import ml_collections

from configs import laser_atari


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_atari`. One agent of the sweep; its centre values."""
    config = laser_atari.get_config()
    config.agent.update(
        {
            "torso": "deep",  # section 5.1
            "channel_multiplier": 4,  # section 5.1
            "center_observation": False,
            "discount": 0.995,  # section 5.1
            "entropy_cost": 0.01,  # of {0.005, 0.01, 0.02}, section 5.1
        }
    )
    config.environment.update({"num_envs": 64, "no_op_max": 37})  # appendix D
    config.replay.update(
        {
            "unroll_length": 19,  # agent steps, section 5.1
            "batch_size": 160,  # 32 online + 128 replayed unrolls, section 5.1
            "replay_fraction": 0.8,
            "capacity": 15_000_000,  # agent steps, section 5.1 (single agent)
            "queue_capacity": 64,  # unrolls
        }
    )
    config.learner.update(
        {
            "learning_rate": 6e-4,  # of {3e-4, 6e-4, 1.2e-3}, section 5.1
            "learning_rate_schedule": "constant",  # section 5.1, the sweep's
            "rmsprop_epsilon": 0.01,  # IMPALA, Atari
            "gradient_clip": 0.0,  # section 5.1: none
        }
    )
    config.run.update({"env_frames": 200_000_000, "evaluation_episodes": 200})
    return config

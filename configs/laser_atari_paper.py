"""LASER's single agent on Atari (Schmitt et al. 2020, section 5.1: no sweep), for accelerators.

The agents of the paper's sweep differ from it: see `sweep_laser_atari_paper`.
"""

import ml_collections

from configs import laser_atari


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_atari`. Section numbers are LASER's."""
    config = laser_atari.get_config()
    config.agent.update(
        {
            "torso": "deep",  # section 5.1
            "channel_multiplier": 4,  # section 5.1
            "normalise_images": False,  # neither paper does
            "discount": 0.995,  # section 5.1
            "entropy_cost": 0.01,  # IMPALA's initial parameters, section 5.1
        }
    )
    config.environment.update(
        {
            "num_envs": 64,
            "no_op_max": 37,  # env frames, appendix D
        }
    )
    config.replay.update(
        {
            "unroll_length": 19,  # agent steps, section 5.1
            # Unrolls: section 5.1's 32 online ones, which IMPALA's learning rate is tuned for, and
            # 224 replayed ones, ours by the ratio. Its 128 replayed ones would be 80%.
            "batch_size": 256,
            "replay_fraction": 0.875,  # section 5.1: the single agent's
            "capacity": 15_000_000,  # agent steps; section 5.1 ("15M") prints no unit
            "queue_capacity": 64,  # unrolls
        }
    )
    config.learner.update(
        {
            "learning_rate": 6e-4,  # section 5.1: IMPALA's tuned schedule,
            "learning_rate_schedule": "linear",  # which falls to zero at the run's end
            "rmsprop_epsilon": 0.01,  # IMPALA, Atari
            "gradient_clip": 0.0,  # section 5.1: none
        }
    )
    # Frames: table 1. Episodes: IMPALA, Atari; LASER reports its last 100 training episodes.
    config.run.update({"env_frames": 200_000_000, "evaluation_episodes": 200})
    return config

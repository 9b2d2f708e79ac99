"""R2D2+ on a level of DMLab-30 (Kapturowski et al. 2019). Needs `deepmind_lab` and a cluster."""

import ml_collections

from configs import laser_dmlab30, r2d2_atari_paper


def get_config() -> ml_collections.ConfigDict:
    """What differs from `r2d2_atari_paper`: the games, and section 4.2's R2D2+."""
    config = r2d2_atari_paper.get_config()
    config.agent.update(
        {
            "torso": "deep",  # section 4.2
            # Section 4.2: IMPALA's clip, here as IMPALA's published code computes it. What IMPALA
            # prints, "optimistic_asymmetric", counts a goal of 10 as 1.3 apples of 1.
            "reward_clip": "soft_asymmetric",
            "target_period": 400,  # learner updates, section 4.2
        }
    )
    config.environment = laser_dmlab30.get_config().environment
    config.environment.update({"task": "rooms_watermaze", "num_envs": 256})
    # One frame: section 2.3. Batches of half the size, and half as many steps an update: table 2.
    config.replay.update({"frame_stack": 1, "batch_size": 32, "steps_per_update": 3_200})
    return config

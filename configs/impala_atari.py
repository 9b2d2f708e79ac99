"""IMPALA's own Atari setting, with its shallow network: the same agent without replay.

Sized for two CPU cores are the number of games and the budget; the paper trains 200 million frames.
"""

import ml_collections

from configs import laser_atari


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_atari`."""
    config = laser_atari.get_config()
    config.agent.update(
        {
            "normalise_images": False,  # the paper does not; see docs/results/images.md
            "relevance": "none",  # no trust region
            "discount": 0.99,  # IMPALA, Atari
            "entropy_cost": 0.01,  # IMPALA, Atari
        }
    )
    config.environment.num_envs = 64
    config.replay.update(
        {
            "batch_size": 32,  # unrolls; IMPALA, Atari
            "replay_fraction": 0.0,
            "queue_capacity": 64,  # unrolls
        }
    )
    config.learner.update(
        {
            "learning_rate": 6e-4,  # IMPALA, Atari
            "rmsprop_epsilon": 0.01,  # IMPALA, Atari
            "gradient_clip": 40.0,  # global norm; IMPALA, Atari
        }
    )
    config.run.env_frames = 10_000_000  # before action repeat
    return config

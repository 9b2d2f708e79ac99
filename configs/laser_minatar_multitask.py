"""One LASER agent on five MinAtar games whose rewards differ a hundredfold: what PopArt is for."""

import ml_collections

from configs import laser_minatar


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_minatar`."""
    config = laser_minatar.get_config()
    config.agent.update(
        {
            "reward_clip": "none",  # PopArt takes rewards as they are
            "popart": True,
            # Its moments grow fast even with the paper's small step, since targets count by their
            # squares; with a large one those of a game without rewards yet would shrink to nothing
            # and its advantages, divided by them, be noise at full scale.
            "popart_step": 3e-4,  # an update; Hessel et al. 2019
        }
    )
    config.environment.update(
        {
            "task": "all",  # asterix, breakout, freeway, seaquest, space_invaders
            # The games with the most frequent rewards drown the others, but for PopArt.
            "reward_scales": (1.0, 10.0, 1.0, 1.0, 100.0),
            "num_envs": 8,  # of each task
            "max_frames_per_episode": 5_000,  # env frames
        }
    )
    config.replay.update(
        {
            "batch_size": 20,  # unrolls
            "replay_fraction": 0.75,
            "capacity": 500_000,  # agent steps
            "queue_capacity": 20,  # unrolls
        }
    )
    return config

"""LASER with continuous actions: Pendulum-v1, or any environment of vectors and bounded floats."""

import ml_collections

from configs import laser_gymnasium


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_gymnasium`."""
    config = laser_gymnasium.get_config()
    config.agent.update(
        {
            "relevance": "behaviour",  # KL(pi || mu): "implied" has no closed form for densities
            "entropy_cost": 1e-3,
            "popart": True,  # returns of -1,500 and of -150 at one learning rate
        }
    )
    config.environment.task = "Pendulum-v1"
    config.run.env_frames = 500_000
    return config

"""LASER with continuous actions: Pendulum-v1, or any environment of vectors and bounded floats."""

import ml_collections

from configs import laser_gymnasium


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_gymnasium`."""
    config = laser_gymnasium.get_config()
    config.agent.update(
        {
            "relevance": "behaviour",  # KL(pi || mu): "implied" has no closed form for densities
            "kl_threshold": 0.3,  # nats; densities move apart faster than probabilities
        }
    )
    config.environment.task = "Pendulum-v1"
    config.run.env_frames = 200_000
    return config

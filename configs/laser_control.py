"""LASER with continuous actions: Pendulum-v1, or any environment of vectors and bounded floats."""

import ml_collections

from configs import laser_gymnasium


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_gymnasium`."""
    config = laser_gymnasium.get_config()
    config.agent.update(
        {
            "relevance": "behaviour",  # KL(pi || mu): "implied" has no closed form for densities
            "discount": 0.95,  # at 0.99 Pendulum's first values, -600, take half of the run
            "kl_threshold": 0.3,  # nats; densities move apart faster than probabilities
        }
    )
    # RMSProp's mean of squares starts at one: while it falls, small gradients take small steps, and
    # the critic is ready before the policy has run to the bounds, where tanh is flat.
    config.learner.gradient_clip = 1.0
    config.environment.task = "Pendulum-v1"
    config.run.env_frames = 300_000
    return config

"""LASER on an environment of gymnasium's registry that shows vectors: minutes on a laptop.

The same file serves the suites dm_env and tf_agents, which have the same keys:

    python -m launch.train --config=configs/laser_gymnasium.py --config.environment.task=Acrobot-v1
    python -m launch.train --config=configs/laser_gymnasium.py --config.environment.suite=dm_env \
        --config.environment.task=my_module:make
"""

import dataclasses

import ml_collections

from configs import laser_atari
from laser_tf.environments import gymnasium_suite


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_atari`."""
    config = laser_atari.get_config()
    config.agent.update(
        {
            "center_observation": False,
            "mlp_units": (64, 64),
            "normalise_vectors": True,
            "discount": 0.99,
            "reward_clip": "none",
            "entropy_cost": 0.01,
        }
    )
    config.environment = dataclasses.asdict(
        gymnasium_suite.GymnasiumConfig(
            task="CartPole-v1",
            num_envs=16,
        )
    )
    config.replay.update(
        {
            "frame_stack": 1,
            "batch_size": 16,  # unrolls
            "replay_fraction": 0.75,
            "capacity": 50_000,  # agent steps
            "queue_capacity": 16,  # unrolls
        }
    )
    config.learner.update(
        {
            "learning_rate": 1e-3,
            "rmsprop_epsilon": 1e-5,
            "gradient_clip": 40.0,  # returns are not clipped
            "compute_dtype": "float32",  # the network is too small to gain from another
        }
    )
    config.run.update({"env_frames": 300_000, "metrics_seconds": 2.0, "evaluation_episodes": 100})
    return config

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
            "normalise_images": False,
            "mlp_units": (64, 64),
            # Ours: ReLU's values of rarely seen states overshoot, see docs/results/control.md.
            "mlp_activation": "tanh",
            "normalise_vectors": True,
            "fusion_units": 128,  # of observations with images, texts and vectors
            "discount": 0.99,
            "entropy_cost": 0.01,
            # Returns of 500 and of -1,500 at one learning rate; unnormalised, the value loss would
            # be a thousand times the policy's in the layers that they share.
            "reward_clip": "none",
            "popart": True,
            # An update; Hessel et al. have 3e-4. Ours: a run has few thousand. At 0.01 sigma falls
            # below 0.1 where all returns are alike, and what advantages are then left is noise.
            "popart_step": 1e-3,
        }
    )
    config.environment = dataclasses.asdict(
        gymnasium_suite.GymnasiumConfig(
            task="CartPole-v1",
            num_envs=8,  # few, so that online unrolls are fresh
        )
    )
    config.replay.update(
        {
            "frame_stack": 1,
            "batch_size": 16,  # unrolls
            "replay_fraction": 0.875,  # an update for every 40 agent steps
            "capacity": 50_000,  # agent steps
            "queue_capacity": 4,  # unrolls
        }
    )
    config.learner.update(
        {
            "learning_rate": 1e-3,
            "rmsprop_epsilon": 1e-5,
            "gradient_clip": 40.0,  # IMPALA; for the first updates, before PopArt has the scale
            "compute_dtype": "float32",  # the network is too small to gain from another
        }
    )
    config.run.update({"env_frames": 200_000, "metrics_seconds": 2.0, "evaluation_episodes": 100})
    return config

"""ACER with continuous actions: Pendulum-v1, or any environment of vectors and bounded floats.

The control suite's tasks: `make control`, then

    python -m launch.train --config=configs/acer_control.py --config.environment.suite=dm_control \
        --config.environment.task=cheetah/run

Section numbers are ACER's (Wang et al. 2017).
"""

import dataclasses

import ml_collections

from configs import laser_gymnasium
from laser_tf.agents import acer_config


def get_config() -> ml_collections.ConfigDict:
    """The environments of `laser_gymnasium`, learned by ACER wholly off-policy."""
    config = laser_gymnasium.get_config()
    config.agent = dataclasses.asdict(
        acer_config.AcerConfig(
            mlp_units=(64, 64),
            advantage_units=(64, 64),
            discount=0.99,  # appendix E.1
            entropy_cost=0.0,  # the deviation is fixed
            truncation=5.0,  # c; section 6
            delta=1.0,  # section 6 draws 0.1 to 2 at random
            average_decay=0.995,  # alpha; section 6
            policy_std=0.3,  # half ranges; section 6
            dueling_samples=5,  # n; section 6
        )
    )
    config.environment.task = "Pendulum-v1"
    config.replay.update(
        {
            "unroll_length": 50,  # agent steps, k; section 6
            "batch_size": 4,  # unrolls
            "replay_fraction": 0.0,
            "steps_per_update": 50,  # agent steps; each is drawn 4 times on average, section 6
            "warm_up": 2_000,  # agent steps
            "capacity": 50_000,  # agent steps; section 6 has 5,000 frames a thread
        }
    )
    config.learner.update(
        {
            "learning_rate": 5e-4,  # section 6 draws 1e-4 to 10^-3.3 at random
            "learning_rate_schedule": "constant",
            "gradient_clip": 40.0,
        }
    )
    config.run.env_frames = 300_000
    return config

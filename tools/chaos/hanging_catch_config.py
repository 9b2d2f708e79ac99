"""LASER on the catch that can hang, in many processes."""

import dataclasses

from ml_collections import config_dict

from configs import laser
from laser_tf.environments import gymnasium_suite


def get_config() -> config_dict.ConfigDict:
    """Returns `laser:catch` on the catch that can hang."""
    config = laser.get_config("catch")
    config.environment = dataclasses.asdict(
        gymnasium_suite.GymnasiumConfig(
            task="tools.chaos.hanging_catch:HangingCatch-v0",
            num_envs=8,
            num_workers=1,
            reply_seconds=10.0,
        )
    )
    return config

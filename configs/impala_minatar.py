"""IMPALA on a MinAtar game: `laser_minatar` without replay and trust region."""

import ml_collections

from configs import laser_minatar


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_minatar`."""
    config = laser_minatar.get_config()
    config.agent.relevance = "none"
    # An update sees as many online unrolls as LASER's, so both take as many updates a frame.
    config.replay.batch_size = round(config.replay.batch_size * (1 - config.replay.replay_fraction))
    config.replay.replay_fraction = 0.0
    return config

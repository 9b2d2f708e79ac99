"""Four LASER agents on one replay, on catch: a minute on a laptop. For first tries and tests."""

import ml_collections

from configs import laser_catch, sweep_laser_minatar


def get_config() -> ml_collections.ConfigDict:
    """`laser_catch`, swept."""
    config = laser_catch.get_config()
    sweep = sweep_laser_minatar.get_config()
    config.sweep, config.population = sweep.sweep, sweep.population
    config.sweep.max_lead_env_frames = 2_000
    config.population.ready_env_frames = 10_000
    return config

"""The grid of the paper's sweep on Atari with the small agents of `laser_atari`, one common replay.

The paper's own agents: `sweep_laser_atari_paper`.
"""

import ml_collections

from configs import laser_atari, sweep_laser_minatar


def get_config() -> ml_collections.ConfigDict:
    """`laser_atari`, swept as in LASER, section 5.1."""
    config = laser_atari.get_config()
    sweep = sweep_laser_minatar.get_config()
    config.sweep, config.population = sweep.sweep, sweep.population
    config.sweep.grid = {  # LASER, section 5.1
        "learner": {"learning_rate": (3e-4, 6e-4, 1.2e-3)},
        "agent": {"entropy_cost": (5e-3, 1e-2, 2e-2)},
    }
    config.sweep.max_lead_env_frames = 50_000  # of each agent
    config.population.ready_env_frames = 500_000  # of each agent
    config.learner.learning_rate_schedule = "constant"  # LASER, section 5.1
    config.replay.capacity = 180_000  # agent steps, of all agents together
    return config

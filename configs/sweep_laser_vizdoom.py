"""Six recurrent LASER agents on one replay, on ViZDoom's health_gathering; needs `make vizdoom`.

Two have the settings of `laser_vizdoom`, four a learning rate far too high and hardly an entropy
cost, so that they get stuck (`launch.reproduce --figure=sharing_vizdoom`).
"""

import ml_collections

from configs import laser_vizdoom, sweep_laser_minatar

_NORMAL, _STUCK = (6e-4, 0.01), (1e-2, 1e-4)  # learning rate, entropy cost; the latter are ours


def get_config() -> ml_collections.ConfigDict:
    """`laser_vizdoom`, swept."""
    config = laser_vizdoom.get_config()
    sweep = sweep_laser_minatar.get_config()
    config.sweep, config.population = sweep.sweep, sweep.population
    learning_rates, entropy_costs = zip(*[_NORMAL] * 2 + [_STUCK] * 4, strict=True)
    config.sweep.grid = ml_collections.ConfigDict()
    config.sweep.zipped = ml_collections.ConfigDict(
        {"learner": {"learning_rate": learning_rates}, "agent": {"entropy_cost": entropy_costs}}
    )
    config.environment.num_envs = 4  # of each agent; few, so that online unrolls are fresh
    config.replay.update(
        {
            "replay_fraction": 0.875,  # LASER, section 5.3: 2 online unrolls of 16
            "capacity": 1_000_000,  # agent steps; more than six agents live through
            "queue_capacity": 4,  # unrolls, of each agent
        }
    )
    config.run.update({"env_frames": 500_000, "evaluation_episodes": 0})
    return config

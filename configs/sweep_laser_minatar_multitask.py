"""Ten LASER agents on one replay, each playing five MinAtar games, with settings good and bad.

`launch.reproduce --figure=3_multitask` compares what sharing does to them.
"""

import ml_collections

from configs import laser_minatar_multitask, sweep_laser_minatar


def get_config() -> ml_collections.ConfigDict:
    """`laser_minatar_multitask`, swept over wide ranges."""
    config = laser_minatar_multitask.get_config()
    sweep = sweep_laser_minatar.get_config()
    config.sweep, config.population = sweep.sweep, sweep.population
    config.sweep.grid = ml_collections.ConfigDict()
    # A thousandfold each: some of ten agents learn well, some not at all.
    config.sweep.log_uniform = ml_collections.ConfigDict(
        {
            "learner": {"learning_rate": (1e-4, 1e-1)},
            "agent": {"entropy_cost": (5e-5, 1e-1)},
        }
    )
    config.sweep.samples = 10  # agents
    config.environment.num_envs = 2  # of each task and agent; few, so that online unrolls are fresh
    config.replay.update(
        {
            "batch_size": 16,  # unrolls
            "replay_fraction": 0.875,  # LASER, section 5.3: 2 online unrolls
            "capacity": 1_000_000,  # agent steps, of all agents together
            "queue_capacity": 8,  # unrolls, of each agent
        }
    )
    config.run.update({"env_frames": 300_000, "evaluation_episodes": 0})
    return config

"""Four LASER agents on one replay, on a MinAtar game: two learning rates, two entropy costs."""

import ml_collections

from configs import laser_minatar


def get_config() -> ml_collections.ConfigDict:
    """`laser_minatar`, swept."""
    config = laser_minatar.get_config()
    config.environment.num_envs = 8  # of each agent
    config.replay.update(
        {
            "batch_size": 16,  # unrolls
            "replay_fraction": 0.875,  # LASER, section 5.3
            "capacity": 400_000,  # agent steps, of all agents together
            "queue_capacity": 8,  # unrolls, of each agent
        }
    )
    config.sweep = ml_collections.ConfigDict(
        {
            "grid": {
                "learner": {"learning_rate": (5e-4, 2e-3)},
                "agent": {"entropy_cost": (5e-3, 2e-2)},
            },
            "zipped": {},
            "log_uniform": {},
            "choices": {},
            "samples": 1,  # agents for each point
            "seed": 1,
            "shared_replay": True,
            "equal_speed": True,  # LASER, section 5.1
            "max_lead_env_frames": 10_000,
            "label": "",
            "replica": 1,
        }
    )
    config.population = ml_collections.ConfigDict(
        {"method": "none", "ready_env_frames": 50_000, "truncation_fraction": 0.25}
    )
    config.run.update({"env_frames": 300_000, "evaluation_episodes": 30})
    return config

"""LASER agents on one replay, on catch: four for first tries and tests, a minute on a laptop.

`--config=configs/sweep_laser_catch.py:companions` has ten, of which eight have a learning rate far
too high, so that they collapse (`launch.reproduce --figure=sharing`).
"""

import ml_collections

from configs import laser_catch, sweep_laser_minatar

_NORMAL, _COLLAPSING = 3e-3, 0.5  # learning rates; ours: `laser_catch`'s, and one far too high


def get_config(agents: str = "grid") -> ml_collections.ConfigDict:
    """`laser_catch`, swept.

    Args:
      agents: grid, those of `sweep_laser_minatar`; or companions.

    Raises:
      ValueError: for others.
    """
    if agents not in ("grid", "companions"):
        raise ValueError(f"there are no agents {agents!r}: choose grid or companions")
    config = laser_catch.get_config()
    sweep = sweep_laser_minatar.get_config()
    config.sweep, config.population = sweep.sweep, sweep.population
    config.sweep.max_lead_env_frames = 2_000
    config.population.ready_env_frames = 10_000
    if agents == "companions":
        _set_companions(config)
    return config


def _set_companions(config: ml_collections.ConfigDict) -> None:
    config.agent.reward_clip = "none"  # with an offset rewards are not in [-1, 1]
    config.environment.num_envs = 4  # of each agent; few, so that online unrolls are fresh
    config.replay.update(
        {
            "replay_fraction": 0.875,  # LASER, section 5.3: 2 online unrolls of 16
            "capacity": 400_000,  # agent steps; more than ten agents live through
            "queue_capacity": 4,  # unrolls, of each agent
        }
    )
    rates = (_NORMAL,) * 2 + (_COLLAPSING,) * 8
    config.sweep.grid = ml_collections.ConfigDict({"learner": {"learning_rate": rates}})
    config.run.update({"env_frames": 30_000, "evaluation_episodes": 0})

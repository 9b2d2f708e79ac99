"""Recurrent LASER on a ViZDoom scenario from pixels; needs `make vizdoom`.

Tasks: basic, deadly_corridor, defend_the_center, defend_the_line, health_gathering, my_way_home,
predict_position, take_cover.
"""

import dataclasses

import ml_collections

from configs import laser_atari
from laser_tf.environments import vizdoom


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_atari`."""
    config = laser_atari.get_config()
    config.agent.update(
        {
            "center_observation": True,
            "normalise_images": False,
            "core": "lstm",
            "core_size": 256,
        }
    )
    config.environment = dataclasses.asdict(
        vizdoom.VizDoomConfig(
            task="health_gathering",
            num_envs=8,
            max_frames_per_episode=2_100,  # env frames: the scenarios' own limit, or nearly
        )
    )
    config.replay.update(
        {
            "unroll_length": 32,  # agent steps
            "frame_stack": 1,  # frames
            "batch_size": 16,  # unrolls
            "replay_fraction": 0.75,
            "capacity": 50_000,  # agent steps
            "queue_capacity": 8,  # unrolls
            "core_state": "recomputed",
        }
    )
    config.learner.update(
        {
            "learning_rate": 6e-4,  # IMPALA, Atari
            "gradient_clip": 40.0,  # IMPALA
        }
    )
    config.run.update({"env_frames": 4_000_000, "evaluation_episodes": 50})
    return config

"""Recurrent LASER in a T-maze (LASER, section A.2): the turn depends on a cue many steps ago."""

import dataclasses

import ml_collections

from configs import laser_atari
from laser_tf.environments import tmaze


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_atari`."""
    config = laser_atari.get_config()
    config.agent.update(
        {
            "torso": "flat",
            "normalise_images": False,
            "core": "lstm",
            "core_size": 64,
            "core_memory_span": 100,  # agent steps; ours, see docs/training.md
            "discount": 0.99,
            "reward_clip": "none",  # returns are within [-2, 1]
        }
    )
    config.environment = dataclasses.asdict(
        tmaze.TMazeConfig(
            corridor_length=50,  # cells, of about as many agent steps
            num_envs=32,
        )
    )
    config.replay.update(
        {
            "unroll_length": 79,  # agent steps; LASER, DMLab: reaches from turn to cue
            "frame_stack": 1,  # frames
            "batch_size": 16,  # unrolls
            "replay_fraction": 0.75,
            "capacity": 100_000,  # agent steps
            "queue_capacity": 16,  # unrolls
            "core_state": "recomputed",
        }
    )
    config.learner.update(
        {"learning_rate": 1e-3, "rmsprop_epsilon": 1e-5, "compute_dtype": "float32"}
    )
    config.run.update({"env_frames": 1_000_000, "evaluation_episodes": 100})
    return config

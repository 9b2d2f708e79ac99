"""R2D2 in a T-maze: the turn depends on a cue many steps ago."""

import dataclasses

import ml_collections

from configs import laser_tmaze
from laser_tf.agents import r2d2_config


def get_config() -> ml_collections.ConfigDict:
    """The games of `laser_tmaze`, learned by R2D2."""
    config = laser_tmaze.get_config()
    config.agent = dataclasses.asdict(
        r2d2_config.R2D2Config(
            torso="flat",
            core="lstm",
            core_size=64,
            core_memory_span=100,  # agent steps; ours, see docs/training.md
            hidden_units=64,
            discount=0.99,
            n_steps=5,  # section 2.3
            target_period=100,  # learner updates; the paper's 2,500 are of a run 1,000 times longer
        )
    )
    config.replay.update(
        {
            "unroll_length": 20,  # agent steps
            "sequence_length": 60,  # agent steps: from cue to turn, or no gradient joins them
            "sequence_overlap": 20,  # agent steps
            "burn_in": 20,  # agent steps
            "batch_size": 16,  # sequences
            "steps_per_update": 80,  # agent steps an update: each is learned from 12 times
            "warm_up": 10_000,  # agent steps
            "core_state": "stored",
            "priority_exponent": 0.9,  # table 2
            "importance_exponent": 0.6,  # table 2
        }
    )
    config.learner.update(
        {
            "optimizer": "adam",
            "learning_rate": 1e-3,
            "learning_rate_schedule": "constant",
            "adam_epsilon": 1e-3,  # table 2
            "jit_compile": "on",  # no convolutions: three times as fast on a CPU
        }
    )
    return config

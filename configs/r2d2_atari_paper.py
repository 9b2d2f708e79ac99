"""R2D2's own Atari setting (Kapturowski et al. 2019, table 2), for accelerators."""

import dataclasses

import ml_collections

from configs import laser_atari
from laser_tf.agents import r2d2_config


def get_config() -> ml_collections.ConfigDict:
    """What differs from `laser_atari`. What table 2 leaves out is Ape-X's (Horgan et al. 2018)."""
    config = laser_atari.get_config()
    config.agent = dataclasses.asdict(
        r2d2_config.R2D2Config(
            torso="dqn",  # appendix
            core="lstm",  # appendix
            core_size=512,  # appendix
            hidden_units=512,  # appendix
            discount=0.997,  # table 2
            n_steps=5,  # section 2.3
            reward_clip="none",  # section 2.3
            rescaling_epsilon=1e-3,  # table 2
            target_period=2_500,  # learner updates, table 2
            priority_eta=0.9,  # section 2.3
            epsilon_base=0.4,  # Ape-X
            epsilon_alpha=7.0,  # Ape-X
            evaluation_epsilon=1e-3,  # ours
            reset_at_life_loss=False,  # True with life_loss_is_end: figure 8's "reset"
        )
    )
    config.environment.update(
        {
            "num_envs": 256,  # table 2: actors
            "num_threads": 0,
            "full_action_space": True,  # section 2.3
            "life_loss_is_end": False,  # section 2.3; True: figure 8's "roll"
            "no_op_max": 30,  # table 4
        }
    )
    config.replay.update(
        {
            "unroll_length": 40,  # agent steps; actors copy weights as often (table 2: 400)
            "frame_stack": 4,  # section 2.3
            "sequence_length": 80,  # agent steps, m, table 2
            "sequence_overlap": 40,  # agent steps, section 2.3
            "burn_in": 40,  # agent steps, l, table 2
            "batch_size": 64,  # sequences, table 2
            "steps_per_update": 6_400,  # agent steps; each is learned from 0.8 times, appendix
            "warm_up": 50_000,  # agent steps, Ape-X
            "capacity": 4_000_000,  # agent steps, table 2
            "queue_capacity": 512,  # unrolls
            "core_state": "stored",  # section 3; "zero" for its variants, burn_in 0 for others
            "priority_exponent": 0.9,  # table 2
            "importance_exponent": 0.6,  # table 2
        }
    )
    config.learner.update(
        {
            "optimizer": "adam",  # table 2
            "learning_rate": 1e-4,  # table 2
            "learning_rate_schedule": "constant",
            "adam_epsilon": 1e-3,  # table 2
            "gradient_clip": 40.0,  # Ape-X
        }
    )
    config.run.update({"env_frames": 10_000_000_000, "replay_checkpoint_minutes": 120.0})
    return config

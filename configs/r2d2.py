"""R2D2 (Kapturowski et al. 2019). Section and table numbers are R2D2's.

Numbers that table 2 leaves out are Ape-X's (Horgan et al. 2018).
"""

from configs import environments

_R2D2: environments.Part = {
    "agent": {
        "name": "r2d2",
        "core": "lstm",  # appendix
        "discount": 0.99,
        "n_steps": 5,  # section 2.3
    },
    "replay": {
        "scheme": "sequences",
        "batch_size": 16,  # sequences
        "priority_exponent": 0.9,  # table 2
        "importance_exponent": 0.6,  # table 2
    },
    "learner": {
        "optimizer": "adam",  # table 2
        "learning_rate_schedule": "constant",
        "adam_epsilon": 1e-3,  # table 2
    },
}

_ATARI: environments.Part = {
    "agent": {
        "image_normalisation": "center",  # see docs/results/atari.md
        "core_size": 128,
        "hidden_units": 128,
        "target_period": 250,  # learner updates
    },
    "replay": {
        "unroll_length": 10,  # agent steps
        "sequence_length": 20,  # agent steps
        "sequence_overlap": 10,  # agent steps, half of them: section 2.3
        "burn_in": 10,  # agent steps
        "steps_per_update": 80,  # agent steps per update: the learner uses each step 4 times
        "warm_up": 20_000,  # agent steps
        "capacity": 100_000,  # agent steps
        "queue_capacity": 16,  # unrolls
    },
    "learner": {
        "learning_rate": 3e-4,
        "gradient_clip": 40.0,  # Ape-X
    },
    "environment": {"num_envs": 16, "life_loss_is_end": False},
    "run": {"env_frames": 14_000_000},  # an hour and a half
}

# For accelerators.
_PAPER: environments.Part = {
    "agent": {
        "torso": "dqn",  # appendix
        "core_size": 512,  # appendix
        "hidden_units": 512,  # appendix
        "discount": 0.997,  # table 2
        "reward_clip": "none",  # section 2.3
        "rescaling_epsilon": 1e-3,  # table 2
        "target_period": 2_500,  # learner updates, table 2
        "priority_eta": 0.9,  # section 2.3
        "epsilon_base": 0.4,  # Ape-X
        "epsilon_alpha": 7.0,  # Ape-X
        "evaluation_epsilon": 1e-3,
        "reset_at_life_loss": False,  # True with life_loss_is_end: figure 8's "reset"
    },
    "replay": {
        "unroll_length": 40,  # agent steps; actors copy weights as often (table 2: 400)
        "sequence_length": 80,  # agent steps, m, table 2
        "sequence_overlap": 40,  # agent steps, section 2.3
        "burn_in": 40,  # agent steps, l, table 2
        "batch_size": 64,  # sequences, table 2
        "steps_per_update": 6_400,  # agent steps; each is learned from 0.8 times, appendix
        "warm_up": 50_000,  # agent steps, Ape-X
        "capacity": 4_000_000,  # agent steps, table 2
        "queue_capacity": 512,  # unrolls
        "core_state": "stored",  # section 3; "zero" for its variants, burn_in 0 for others
    },
    "learner": {
        "learning_rate": 1e-4,  # table 2
        "gradient_clip": 40.0,  # Ape-X
    },
    "environment": {"num_envs": 256},  # table 2: actors
    "run": {"env_frames": 10_000_000_000, "replay_checkpoint_minutes": 120.0},
}

_ATARI_PAPER: environments.Part = {
    "environment": {
        "num_threads": 0,
        "full_action_space": True,  # section 2.3
        "life_loss_is_end": False,  # section 2.3; True: figure 8's "roll"
        "no_op_max": 30,  # table 4
    },
}

# R2D2+ on a level.
_DMLAB30: environments.Part = {
    "agent": {
        "torso": "deep",  # section 4.2
        # Section 4.2: IMPALA's clip, here as IMPALA's published code computes it. What IMPALA
        # prints, "optimistic_asymmetric", counts a goal of 10 as 1.3 apples of 1.
        "reward_clip": "soft_asymmetric",
        "target_period": 400,  # learner updates, section 4.2
    },
    "environment": {"task": "rooms_watermaze"},
    # Table 2: half the batch size, half the steps per update.
    "replay": {"batch_size": 32, "steps_per_update": 3_200},
}

_MINATAR: environments.Part = {
    "agent": {
        "core_size": 128,
        "hidden_units": 128,
        "target_period": 500,  # learner updates; the paper's 2,500 belong to a far longer run
    },
    "replay": {
        "unroll_length": 20,  # agent steps
        "sequence_length": 40,  # agent steps
        "sequence_overlap": 20,  # agent steps, half of them: section 2.3
        "burn_in": 20,  # agent steps
        "steps_per_update": 40,  # agent steps per update: the learner uses each step 16 times
        "warm_up": 10_000,  # agent steps
        "capacity": 200_000,  # agent steps
        "queue_capacity": 32,  # unrolls
    },
    "learner": {"learning_rate": 5e-4},
}

_TMAZE: environments.Part = {
    "agent": {
        "core_size": 64,
        "core_memory_span": 100,  # agent steps; see docs/configuration.md
        "hidden_units": 64,
        "target_period": 100,  # learner updates; 2,500 in the paper's 1,000 times longer run
    },
    "replay": {
        "unroll_length": 20,  # agent steps
        "sequence_length": 60,  # agent steps: from cue to turn, or no gradient joins them
        "sequence_overlap": 20,  # agent steps
        "burn_in": 20,  # agent steps
        "steps_per_update": 80,  # agent steps per update: the learner uses each step 12 times
        "warm_up": 10_000,  # agent steps
        "capacity": 100_000,  # agent steps
        "queue_capacity": 16,  # unrolls
    },
    "learner": {
        "learning_rate": 1e-3,
        "jit_compile": "on",  # XLA: three times as fast on a CPU without convolutions
    },
}

_GYMNASIUM: environments.Part = {
    "agent": {
        "fusion_units": 128,  # of observations with images, texts and vectors
        "core_size": 64,
        "hidden_units": 64,
        "target_period": 100,  # learner updates; 2,500 in the paper's far longer run
    },
    "replay": {
        "unroll_length": 10,  # agent steps
        "sequence_length": 20,  # agent steps
        "sequence_overlap": 10,  # agent steps, half of them: section 2.3
        "burn_in": 10,  # agent steps
        "steps_per_update": 20,  # agent steps per update: the learner uses each step 16 times
        "warm_up": 2_000,  # agent steps
        "capacity": 50_000,  # agent steps
        "queue_capacity": 8,  # unrolls
    },
    "learner": {"learning_rate": 1e-3, "gradient_clip": 40.0},
}

VARIANTS: environments.Variants = {
    "atari": (environments.ATARI, _R2D2, _ATARI),
    "atari_paper": (environments.ATARI, _R2D2, _PAPER, _ATARI_PAPER),
    "dmlab30": (environments.DMLAB30, _R2D2, _PAPER, _DMLAB30),
    "gymnasium": (environments.GYMNASIUM, _R2D2, _GYMNASIUM),
    "minatar": (environments.MINATAR, _R2D2, _MINATAR),
    "tmaze": (environments.T_MAZE, _R2D2, _TMAZE),
}
get_config = environments.selector(VARIANTS, default="atari")

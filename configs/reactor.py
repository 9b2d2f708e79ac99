"""Reactor (Gruslys et al. 2018). Section and table numbers are Reactor's.

Numbers that Reactor takes from DQN's pipeline (section 4.1) without printing them are DQN's
(Mnih et al. 2015).
"""

from configs import environments

_REACTOR: environments.Part = {
    "agent": {
        "name": "reactor",
        "discount": 0.99,  # DQN
        "reward_clip": "unit",  # DQN
        "bins": 51,  # C51 (Bellemare et al. 2017)
        "v_min": -10.0,  # C51; a new critic predicts the middle, which must be near 0
        "v_max": 10.0,  # C51
    },
    "replay": {
        "scheme": "contextual",
        "unroll_length": 16,  # agent steps
        "sequence_length": 32,  # agent steps between 33 frames; section 3.4
        "sequence_overlap": 16,  # agent steps
        "batch_size": 4,  # sequences; section 3.4
        "priority_exponent": 1.0,  # section 3.3
        "importance_exponent": 1.0,  # section 3.3
        "queue_capacity": 16,  # unrolls
    },
    "learner": {
        "optimizer": "adam",  # section 3.4.1
        "learning_rate_schedule": "constant",
        "adam_beta1": 0.0,  # section 3.4.1: zero momentum
        "adam_epsilon": 1e-5,
    },
}

_ATARI: environments.Part = {
    "agent": {
        "image_normalisation": "center",  # used for its results in docs/results/atari.md
        "core": "none",  # stacked frames show what moves; a core's steps take turns on a CPU
        "hidden_units": 128,
        "entropy_cost": 0.005,
        "target_period": 60,  # learner updates; the paper's 1,000 belong to a far longer run
    },
    "replay": {
        "steps_per_update": 24,  # agent steps per update: the learner uses each step 5 times
        "warm_up": 20_000,  # agent steps
        "capacity": 100_000,  # agent steps
    },
    "learner": {"learning_rate": 3e-4},
    "environment": {"num_envs": 16},
}

# For accelerators.
_ATARI_PAPER: environments.Part = {
    "agent": {
        "torso": "reactor",  # table 3
        "core": "lstm",  # table 3; of policy and critic each
        "core_size": 128,  # table 3
        "hidden_units": 32,  # table 3
        "uniform_share": 0.01,  # section 6.4
        "lambda_": 1.0,  # section 4.1
        "policy_gradient": "beta_loo",  # section 3.1
        "truncation": 1.0,  # c; section 4.1: beta is 1
        "entropy_cost": 0.01,  # not printed, see docs/agents/reactor.md
        "target_period": 1_000,  # learner updates; section 4.1
    },
    "replay": {
        "frame_stack": 1,  # table 3: cores remember the frames before
        "steps_per_update": 5,  # agent steps; section 3.4: 4 to 6
        "warm_up": 50_000,  # agent steps; DQN
        "capacity": 1_000_000,  # agent steps; DQN
    },
    "learner": {
        "learning_rate": 5e-5,  # section 3.4.1
        "adam_epsilon": 1e-8,  # TensorFlow's
    },
    "environment": {
        "num_envs": 10,  # section 4.1: workers
        "num_threads": 0,
    },
    "run": {"env_frames": 200_000_000, "evaluation_episodes": 200},  # section 4.1
}

_MINATAR: environments.Part = {
    "agent": {
        "core": "none",  # boards show what moves, and where to
        "hidden_units": 64,
        "entropy_cost": 0.05,  # see docs/agents/reactor.md: with 0.01 one action dominates
        "target_period": 250,  # learner updates; the paper's 1,000 belong to a far longer run
    },
    "replay": {
        "batch_size": 16,  # sequences
        "steps_per_update": 32,  # agent steps per update: the learner uses each step 16 times
        "warm_up": 5_000,  # agent steps
        "capacity": 200_000,  # agent steps
        "queue_capacity": 32,  # unrolls
    },
    "learner": {"learning_rate": 5e-4},
}

_GYMNASIUM: environments.Part = {
    "agent": {
        "fusion_units": 128,  # of observations with images, texts and vectors
        "core": "none",  # vectors often show the whole state
        "hidden_units": 64,
        "reward_clip": "none",
        "bins": 101,
        "v_min": -100.0,  # reward; for discounted returns of CartPole, between 0 and 100
        "v_max": 100.0,
        "entropy_cost": 0.05,  # as on MinAtar
        "target_period": 100,  # learner updates; the paper's 1,000 belong to a far longer run
    },
    "replay": {
        "batch_size": 16,  # sequences
        "steps_per_update": 32,  # agent steps per update: the learner uses each step 16 times
        "warm_up": 2_000,  # agent steps
        "capacity": 50_000,  # agent steps
    },
    "learner": {"learning_rate": 5e-4},
}

VARIANTS: environments.Variants = {
    "atari": (environments.ATARI, _REACTOR, _ATARI),
    "atari_paper": (environments.ATARI, _REACTOR, _ATARI_PAPER),
    "gymnasium": (environments.GYMNASIUM, _REACTOR, _GYMNASIUM),
    "minatar": (environments.MINATAR, _REACTOR, _MINATAR),
}
get_config = environments.selector(VARIANTS, default="atari")

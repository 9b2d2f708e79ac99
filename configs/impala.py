"""IMPALA (Espeholt et al. 2018): LASER's agent without replay and without a trust region."""

from configs import environments

_IMPALA: environments.Part = {
    "agent": {
        "name": "laser",
        "discount": 0.99,  # IMPALA, Atari
        "reward_clip": "unit",  # IMPALA, Atari
        "baseline_cost": 0.5,  # IMPALA, Atari
        "entropy_cost": 0.01,  # IMPALA, Atari
        "trust_region": "none",  # no trust region
    },
    "replay": {
        "scheme": "online",
        "unroll_length": 20,  # agent steps; IMPALA, Atari
    },
    "learner": {"learning_rate_schedule": "linear"},  # IMPALA, Atari
}

# The paper's network, with 10 of its 200 million frames.
_ATARI: environments.Part = {
    "replay": {
        "batch_size": 32,  # unrolls; IMPALA, Atari
        "queue_capacity": 64,  # unrolls
    },
    "learner": {
        "learning_rate": 6e-4,  # IMPALA, Atari
        "rmsprop_epsilon": 0.01,  # IMPALA, Atari
        "gradient_clip": 40.0,  # global norm; IMPALA, Atari
        "spare_cores": 1,  # For the emulators. A deep torso needs all cores: 0.
    },
    "environment": {"num_envs": 64},
    "run": {"env_frames": 10_000_000},
}

_MINATAR: environments.Part = {
    "replay": {
        "batch_size": 1,  # unrolls; one online unroll per update, as in LASER's variant
        "queue_capacity": 32,  # unrolls
    },
    "learner": {"learning_rate": 1e-3, "rmsprop_epsilon": 1e-5},
}

# Any vectors; `configs/laser.py` explains the values of its variant `gymnasium`.
_GYMNASIUM: environments.Part = {
    "agent": {
        "fusion_units": 128,  # of observations with images, texts and vectors
        "popart": True,
        "popart_step": 1e-3,  # per update
        "reward_clip": "none",
    },
    "replay": {
        "batch_size": 2,  # unrolls; one update per 40 agent steps
        "queue_capacity": 4,  # unrolls
    },
    "learner": {"learning_rate": 1e-3, "rmsprop_epsilon": 1e-5, "gradient_clip": 40.0},
}

VARIANTS: environments.Variants = {
    "atari": (environments.ATARI, _IMPALA, _ATARI),
    "gymnasium": (environments.GYMNASIUM, _IMPALA, _GYMNASIUM),
    "minatar": (environments.MINATAR, _IMPALA, _MINATAR),
}
get_config = environments.selector(VARIANTS, default="atari")

"""LASER (Schmitt et al. 2020). Section numbers are LASER's."""

from configs import environments
from laser_tf.environments import atari

_LASER: environments.Part = {
    "agent": {
        "name": "laser",
        "discount": 0.99,  # IMPALA's; LASER's 0.995 learns more slowly in short runs
        "reward_clip": "unit",  # IMPALA, Atari
        "baseline_cost": 0.5,  # IMPALA, Atari
        "entropy_cost": 0.01,  # IMPALA, Atari
        "rho_bar": 1.0,  # V-trace, both papers
        "c_bar": 1.0,
        "lambda_": 1.0,
        "trust_region": "auto",  # for discrete actions "implied", section 4.3
        "kl_threshold": 0.1,  # nats; not in the paper, see docs/agents/laser.md
    },
    "replay": {
        "scheme": "mixed",
        "unroll_length": 20,  # agent steps, T; IMPALA, Atari
        "batch_size": 16,  # unrolls
        "replay_fraction": 0.75,  # of a batch; LASER considers 1/2, 3/4 and 7/8
        "queue_capacity": 16,  # unrolls
    },
    "learner": {
        "learning_rate": 1e-3,
        "learning_rate_schedule": "linear",  # IMPALA, Atari
        "optimizer": "rmsprop",  # IMPALA, Atari
        "rmsprop_decay": 0.99,  # IMPALA, Atari
        "rmsprop_momentum": 0.0,  # IMPALA, Atari
        "rmsprop_epsilon": 1e-5,  # 0.01 slows short runs down, see docs/design.md
    },
}

_ATARI: environments.Part = {
    "agent": {
        "image_normalisation": "running",  # avoids dead ReLU units, see docs/results/atari.md
        "entropy_cost": 3e-3,  # smaller than in the papers, see docs/results/atari.md
    },
    "replay": {
        "batch_size": 8,  # unrolls; smaller than in the papers, for more updates per frame
        "capacity": 20_000,  # agent steps
        "queue_capacity": 2,  # unrolls; a longer queue holds older ones if the learner is slow
        "priority_exponent": 0.0,  # uniform; section 5.2
    },
    "learner": {
        "learning_rate": 3e-4,  # half of IMPALA's: see docs/results/atari.md
        "gradient_clip": 0.0,  # section 5.1: none on Atari
        "spare_cores": 1,  # For the emulators. A deep torso needs all cores: 0.
    },
}
# `make train`, minutes on two cores. Fewer updates per frame than on other games leave time for
# more frames. With 8 environments, one of seven runs ended below 18: see docs/results/laser.md.
_PONG: environments.Part = {
    "agent": {"torso": "shallow_equalised", "entropy_cost": 5e-3},
    "environment": {"num_envs": 16},
    "replay": {"replay_fraction": 0.5},
    "learner": {"learning_rate": 4e-4},
    "run": {"env_frames": 3_000_000},
}
_DOPAMINE: environments.Part = {"environment": atari.PROTOCOLS[atari.DOPAMINE]}
_REVISITING: environments.Part = {"environment": atari.PROTOCOLS[atari.REVISITING]}

# The single agent of section 5.1, for accelerators; the sweep's members are in `sweeps.py`.
_ATARI_PAPER: environments.Part = {
    "agent": {
        "torso": "deep",  # section 5.1
        "channel_multiplier": 4,  # section 5.1
        "discount": 0.995,  # section 5.1
        "entropy_cost": 0.01,  # IMPALA's initial parameters, section 5.1
        "trust_region": "implied",  # section 4.3
    },
    "environment": {
        "num_envs": 64,
        "no_op_max": 37,  # env frames, appendix D
    },
    "replay": {
        "unroll_length": 19,  # agent steps, section 5.1
        # Section 5.1 has 32 online unrolls, for which IMPALA's learning rate is tuned. The fraction
        # adds 224 replayed unrolls; the 128 replayed unrolls of section 5.1 would be 80%.
        "batch_size": 256,
        "replay_fraction": 0.875,  # section 5.1: single agent
        "capacity": 15_000_000,  # agent steps; section 5.1 ("15M") prints no unit
        "queue_capacity": 64,  # unrolls
        "priority_exponent": 0.0,  # uniform; section 5.2
    },
    "learner": {
        "learning_rate": 6e-4,  # section 5.1: tuned schedule of IMPALA, ends at zero
        "rmsprop_epsilon": 0.01,  # IMPALA, Atari
        "gradient_clip": 0.0,  # section 5.1: none
    },
    "run": {
        "env_frames": 200_000_000,  # table 1
        "evaluation_episodes": 200,  # IMPALA, Atari; LASER reports its last 100 training episodes
    },
}

_CATCH: environments.Part = {
    "replay": {
        "unroll_length": 10,  # agent steps; an episode has 9 and its reset
        "capacity": 20_000,  # agent steps
    },
    "learner": {"learning_rate": 3e-3},
}

_MINATAR: environments.Part = {
    "replay": {
        # One fresh unroll per update, see docs/results/laser.md.
        "batch_size": 8,  # unrolls
        "replay_fraction": 0.875,
        "capacity": 100_000,  # agent steps
        "queue_capacity": 32,  # unrolls
    },
}

# One agent on five games; their rewards differ by a factor of 100.
_MINATAR_MULTITASK: environments.Part = {
    "environment": {
        "task": "all",  # asterix, breakout, freeway, seaquest, space_invaders
        # Without PopArt, the games with the most frequent rewards dominate the others.
        "reward_scales": (1.0, 10.0, 1.0, 1.0, 100.0),
        "num_envs": 8,  # of each task
        "max_frames_per_episode": 5_000,  # env frames
    },
    "agent": {
        "reward_clip": "none",  # PopArt normalises unclipped rewards
        "popart": True,
        # The second moment grows fast even with the paper's small step, because it averages squared
        # targets. With a large step, the moments of a game without rewards so far would shrink to
        # almost 0. Its advantages are divided by them and would be noise at full scale.
        "popart_step": 3e-4,  # per update; Hessel et al. 2019
    },
    "replay": {
        "batch_size": 20,  # unrolls
        "capacity": 500_000,  # agent steps
        "queue_capacity": 20,  # unrolls
    },
}

_TMAZE: environments.Part = {
    "agent": {
        "core": "lstm",
        "core_size": 64,
        "core_memory_span": 100,  # agent steps; see docs/configuration.md
        "reward_clip": "none",  # returns are within [-2, 1]
    },
    "replay": {
        "scheme": "episodes",
        "unroll_length": 79,  # agent steps; LASER, DMLab: contains cue and turn
        "capacity": 100_000,  # agent steps
    },
}

_BABYAI: environments.Part = {
    "agent": {
        "core": "lstm",
        "core_size": 128,
        "reward_clip": "none",  # returns are within [0, 1]
    },
    "replay": {
        "scheme": "episodes",
        "capacity": 100_000,  # agent steps
    },
}

_GYMNASIUM: environments.Part = {
    "agent": {
        "mlp_units": (64, 64),
        # Values of rarely seen states overshoot with ReLU, see docs/results/vectors.md.
        "mlp_activation": "tanh",
        "normalise_vectors": True,
        "fusion_units": 128,  # of observations with images, texts and vectors
        "popart": True,
        # Per update; Hessel et al. use 3e-4. A run has only a few thousand updates. With 0.01,
        # sigma falls below 0.1 if all returns are alike, and the advantages become noise.
        "popart_step": 1e-3,
        "popart_rises_at_once": True,  # bounds gradients, see docs/results/vectors.md
        # Smaller than on Atari. Divided by PopArt's scale, the advantages of LunarLander are small,
        # and with 0.01 its policies become more random late in the run.
        "entropy_cost": 2e-3,
        # One learning rate serves returns of 500 and of -1,500. Without normalisation, the gradient
        # of the value loss would be a thousand times that of the policy in shared layers.
        "reward_clip": "none",
    },
    "replay": {
        "replay_fraction": 0.875,  # one update per 40 agent steps
        "capacity": 50_000,  # agent steps
        "queue_capacity": 4,  # unrolls
    },
    # IMPALA; needed for the first updates, before PopArt has estimated the scale.
    "learner": {"gradient_clip": 40.0},
}

_CONTROL: environments.Part = {
    "agent": {
        "kl_threshold": 0.3,  # nats; densities move apart faster than probabilities
        "initial_std": 1.0,  # half ranges; explores until the first rewards
        "entropy_cost": 0.01,  # as in `_LASER`
    }
}

_VIZDOOM: environments.Part = {
    "agent": {
        "image_normalisation": "center",
        "core": "lstm",
        "core_size": 256,
    },
    "replay": {
        "scheme": "episodes",
        "unroll_length": 32,  # agent steps
        "capacity": 50_000,  # agent steps
        "queue_capacity": 8,  # unrolls
    },
    "learner": {
        "learning_rate": 6e-4,  # IMPALA, Atari
        "gradient_clip": 40.0,  # IMPALA
    },
}

# Section 5.1 text: 32 online + 128 replayed (80%). For the 87.5% of figures 2 and 3, use
# --config.replay.batch_size=256 --config.replay.replay_fraction=0.875, also with 32 online unrolls.
_DMLAB30: environments.Part = {
    "agent": {
        "trust_region": "implied",  # section 4.3
        "core": "preco_lstm",  # section 5.1
        "core_size": 256,  # IMPALA, figure 3
        "discount": 0.99,  # IMPALA, DMLab
        "reward_clip": "none",  # Hessel et al. 2019: PopArt instead
        "entropy_cost": 2e-3,  # within IMPALA's 5e-5 to 1e-2, sampled by a sweep there
        "popart": True,
        "popart_step": 3e-4,  # Hessel et al. 2019
        "pixel_control_cost": 2e-3,  # per cell; the paper prints none
        "pixel_control_cell": 4,  # UNREAL
    },
    "replay": {
        "scheme": "episodes",
        "unroll_length": 79,  # agent steps; section 5.1
        "batch_size": 160,  # 32 online and 128 replayed unrolls; section 5.1
        "replay_fraction": 0.8,
        "capacity": 10_000_000,  # agent steps; figure 2
        "queue_capacity": 64,  # unrolls
    },
    "learner": {
        "learning_rate": 3e-4,  # within IMPALA's 5e-6 to 5e-3, sampled by a sweep there
        "rmsprop_epsilon": 0.1,  # section 5.1
        "gradient_clip": 40.0,  # IMPALA; LASER's "no clipping" refers to Atari only
    },
}

VARIANTS: environments.Variants = {
    "atari": (environments.ATARI, _LASER, _ATARI),
    "atari_dopamine": (environments.ATARI, _LASER, _ATARI, _DOPAMINE),
    "atari_revisiting": (environments.ATARI, _LASER, _ATARI, _REVISITING),
    "atari_paper": (environments.ATARI, _LASER, _ATARI_PAPER),
    "babyai": (environments.BABYAI, _LASER, _BABYAI),
    "catch": (environments.CATCH, _LASER, _CATCH),
    "control": (environments.GYMNASIUM, environments.PENDULUM, _LASER, _GYMNASIUM, _CONTROL),
    "dmlab30": (environments.DMLAB30, _LASER, _DMLAB30),
    "gymnasium": (environments.GYMNASIUM, _LASER, _GYMNASIUM),
    "minatar": (environments.MINATAR, _LASER, _MINATAR),
    "minatar_multitask": (environments.MINATAR, _LASER, _MINATAR_MULTITASK),
    "pong": (environments.ATARI, _LASER, _ATARI, _PONG),
    "tmaze": (environments.T_MAZE, _LASER, _TMAZE),
    "vizdoom": (environments.VIZDOOM, _LASER, _VIZDOOM),
}
get_config = environments.selector(VARIANTS, default="atari")

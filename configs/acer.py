"""ACER (Wang et al. 2017). Section and algorithm numbers are ACER's."""

from configs import environments

_ACER: environments.Part = {
    "agent": {
        "name": "acer",
        "discount": 0.99,  # section 4
        "reward_clip": "unit",  # section 4: preprocessing of A3C
        "entropy_cost": 0.001,  # section 4
        "truncation": 10.0,  # c; section 4
        "delta": 1.0,  # section 4
        "average_decay": 0.99,  # alpha; section 4
    },
    "replay": {
        "scheme": "alternating",
        "unroll_length": 20,  # agent steps, k; section 4
        "replay_ratio": 4.0,  # replayed batches after an online one; section 4
        "batch_size": 4,  # unrolls; of online and of replayed batches
    },
    "learner": {
        "learning_rate_schedule": "constant",  # section 4
        "rmsprop_epsilon": 1e-5,
    },
}

_ATARI: environments.Part = {
    "agent": {"image_normalisation": "center"},  # used for its results in docs/results/atari.md
    "replay": {
        "capacity": 50_000,  # agent steps; section 4 has 50,000 frames a thread
        "queue_capacity": 8,  # unrolls
    },
    "learner": {"learning_rate": 6e-4},
}

# The paper's size (section 4), for accelerators.
_ATARI_PAPER: environments.Part = {
    "agent": {"torso": "nature"},  # section 4: three convolutions and a dense layer of 512
    "replay": {
        # Section 4: one trajectory per update, from one of 16 asynchronous threads.
        "batch_size": 16,
        "capacity": 800_000,  # agent steps; section 4: 50,000 of each of 16 threads
        "queue_capacity": 32,  # unrolls
    },
    "learner": {
        # Section 4 prints none of these: values of ChainerRL's A3C, see docs/agents/acer.md.
        "learning_rate": 7e-4,
        "rmsprop_epsilon": 0.1,
        "gradient_clip": 40.0,  # global norm
    },
    "environment": {"num_envs": 16},  # section 4: threads
    "run": {
        "env_frames": 200_000_000,  # end of the axis of figure 1
        "evaluation_episodes": 200,
    },
}

_MINATAR: environments.Part = {
    "agent": {"entropy_cost": 0.01},  # as in LASER; the paper uses 0.001 on Atari
    "replay": {
        "capacity": 100_000,  # agent steps
        "queue_capacity": 32,  # unrolls
    },
    "learner": {"learning_rate": 1e-3},
}

_GYMNASIUM: environments.Part = {
    "agent": {
        "fusion_units": 128,  # of observations with images, texts and vectors
        "reward_clip": "none",
        "reward_scale": 0.1,  # for returns in the hundreds: see `_CONTROL`
        "entropy_cost": 0.01,  # as in LASER; the paper uses 0.001 on Atari
    },
    "replay": {
        "capacity": 50_000,  # agent steps
        "queue_capacity": 4,  # unrolls
    },
    "learner": {"learning_rate": 1e-3, "gradient_clip": 40.0},
}

# The methods of section 6 share these values. Section 6 updates from one trajectory of k = 50 steps
# at a time and samples each 4 times on average: 80,000 updates per million agent steps. These
# values give 50,000 updates and use each step 8 times.
_CONTROL: environments.Part = {
    "agent": {
        "mlp_units": (64, 64),
        "discount": 0.99,  # appendix E.1
        # The suite's rewards of up to 1 make returns of up to 100. Values start at 0 and approach
        # the returns by steps of the learning rate. Until then all advantages are far above 0,
        # which is noise.
        "reward_scale": 0.1,
        "entropy_cost": 0.0,  # the deviation is fixed
        "truncation": 5.0,  # c; section 6, and appendix E.2
        "delta": 1.0,  # section 6 samples 0.1 to 2
        "average_decay": 0.995,  # alpha; section 6
        "policy_std": 0.3,  # half ranges; section 6
    },
    "replay": {
        "unroll_length": 20,  # agent steps
        "batch_size": 8,  # unrolls
        "queue_capacity": 4,  # unrolls
    },
    "learner": {
        "learning_rate": 1e-3,  # section 6 samples 1e-4 to 10^-3.3
        "learning_rate_schedule": "constant",
        "rmsprop_epsilon": 1e-5,
        "gradient_clip": 40.0,
    },
}
_ON_POLICY: environments.Part = {"replay": {"scheme": "online"}}
_OFF_POLICY: environments.Part = {
    "replay": {
        "scheme": "replay_only",
        "steps_per_update": 20,  # agent steps
        "warm_up": 2_000,  # agent steps
        "capacity": 50_000,  # agent steps; section 6 has 5,000 frames a thread
    }
}
_CONTROL_ACER: environments.Part = {
    "agent": {
        "name": "acer",
        "advantage_units": (64, 64),
        "dueling_samples": 5,  # n; section 6
    }
}
_A3C: environments.Part = {"agent": {"name": "a3c", "importance": "none"}}
_TIS: environments.Part = {"agent": {"name": "a3c", "importance": "truncated"}}
_TRUST: environments.Part = {"agent": {"trust_region": True}}

_PENDULUM = (environments.GYMNASIUM, environments.PENDULUM, _CONTROL)
VARIANTS: environments.Variants = {
    "atari": (environments.ATARI, _ACER, _ATARI),
    "atari_paper": (environments.ATARI, _ACER, _ATARI_PAPER),
    "gymnasium": (environments.GYMNASIUM, _ACER, _GYMNASIUM),
    "minatar": (environments.MINATAR, _ACER, _MINATAR),
    "control": (*_PENDULUM, _OFF_POLICY, _CONTROL_ACER),
    "control_tis": (*_PENDULUM, _OFF_POLICY, _TIS),
    "control_trust_tis": (*_PENDULUM, _OFF_POLICY, _TIS, _TRUST),
    "control_a3c": (*_PENDULUM, _ON_POLICY, _A3C),
    "control_trust_a3c": (*_PENDULUM, _ON_POLICY, _A3C, _TRUST),
}
get_config = environments.selector(VARIANTS, default="atari")

"""Sweeps of LASER agents that share one replay (Schmitt et al. 2020, sections 5.1, 5.3 and 5.5)."""

from configs import environments, laser

_SWEEP: environments.Part = {
    "sweep": {"equal_speed": True},  # LASER, section 5.1
    "population": {"method": "none", "truncation_fraction": 0.25},
}

# Env frames of each member: the max lead over the slowest, and the min before PBT copies from it.
_CATCH: environments.Part = {
    "sweep": {"max_lead_env_frames": 2_000},
    "population": {"ready_env_frames": 10_000},
}
_MINATAR: environments.Part = {
    "sweep": {"max_lead_env_frames": 10_000},
    "population": {"ready_env_frames": 50_000},
}
_ATARI: environments.Part = {
    "sweep": {
        "max_lead_env_frames": 50_000,
        "grid": {  # LASER, section 5.1
            "learner": {"learning_rate": (3e-4, 6e-4, 1.2e-3)},
            "agent": {"entropy_cost": (5e-3, 1e-2, 2e-2)},
        },
    },
    "population": {"ready_env_frames": 500_000},
    "learner": {"learning_rate_schedule": "constant"},  # LASER, section 5.1
}

# Four members.
_SMALL_GRID: environments.Part = {
    "sweep": {
        "grid": {
            "learner": {"learning_rate": (5e-4, 2e-3)},
            "agent": {"entropy_cost": (5e-3, 2e-2)},
        }
    }
}

# Ten members: eight have a learning rate at which agents collapse, two have the learning rate of
# `laser.py:catch`.
_CATCH_COMPANIONS: environments.Part = {
    "sweep": {"grid": {"learner": {"learning_rate": (3e-3,) * 2 + (0.5,) * 8}}},
    "agent": {"reward_clip": "none"},  # with an offset rewards are not in [-1, 1]
    "environment": {"num_envs": 4},  # of each member; few, so that online unrolls are fresh
    "replay": {
        "replay_fraction": 0.875,  # LASER, section 5.3: 2 online unrolls of 16
        "capacity": 400_000,  # agent steps; more than ten members produce
        "queue_capacity": 4,  # unrolls, of each member
    },
    "run": {"env_frames": 30_000, "evaluation_episodes": 0},
}

_MINATAR_GAME: environments.Part = {
    "environment": {"num_envs": 8},  # of each member
    "replay": {
        "batch_size": 16,  # unrolls
        "replay_fraction": 0.875,  # LASER, section 5.3
        "capacity": 400_000,  # agent steps, of all members together
        "queue_capacity": 8,  # unrolls, of each member
    },
    "run": {"env_frames": 300_000, "evaluation_episodes": 30},
}

_MINATAR_MULTITASK: environments.Part = {
    "sweep": {
        # Ranges of a factor of 1,000: some of ten members learn well, some not at all.
        "log_uniform": {
            "learner": {"learning_rate": (1e-4, 1e-1)},
            "agent": {"entropy_cost": (5e-5, 1e-1)},
        },
        "samples": 10,  # members
    },
    # Of each task and member; few, so that online unrolls are fresh.
    "environment": {"num_envs": 2},
    "replay": {
        "batch_size": 16,  # unrolls
        "replay_fraction": 0.875,  # LASER, section 5.3: 2 online unrolls
        "capacity": 1_000_000,  # agent steps, of all members together
        "queue_capacity": 8,  # unrolls, of each member
    },
    "run": {"env_frames": 300_000, "evaluation_episodes": 0},
}

# Six members: two with the settings of `laser.py:vizdoom`, four with a learning rate far too high
# and almost no entropy cost, with which agents get stuck.
_VIZDOOM: environments.Part = {
    "sweep": {
        "zipped": {
            "learner": {"learning_rate": (6e-4,) * 2 + (1e-2,) * 4},
            "agent": {"entropy_cost": (0.01,) * 2 + (1e-4,) * 4},
        }
    },
    "environment": {"num_envs": 4},  # of each member; few, so that online unrolls are fresh
    "replay": {
        "replay_fraction": 0.875,  # LASER, section 5.3: 2 online unrolls of 16
        "capacity": 1_000_000,  # agent steps; more than six members produce
        "queue_capacity": 4,  # unrolls, of each member
    },
    "run": {"env_frames": 500_000, "evaluation_episodes": 0},
}

# The paper's grid with the small agents of `laser.py:atari`.
_ATARI_SMALL: environments.Part = {
    "replay": {"capacity": 180_000},  # agent steps, of all members together
}

# Section 5.1: 32 online and 128 replayed unrolls per batch (80%). For the "96% replay data per
# batch" of the same section, use --config.replay.batch_size=800
# --config.replay.replay_fraction=0.96, also with 32 online unrolls.
_ATARI_PAPER: environments.Part = {
    "replay": {
        "batch_size": 160,  # 32 online and 128 replayed unrolls, section 5.1
        "replay_fraction": 0.8,
        "capacity": 10_000_000,  # agent steps of all members; figure 3, since Atari has no value
    },
}


def _parts(agent: str, *parts: environments.Part) -> tuple[environments.Part, ...]:
    return *laser.VARIANTS[agent], _SWEEP, *parts


VARIANTS: environments.Variants = {
    "atari": _parts("atari", _ATARI, _ATARI_SMALL),
    "atari_paper": _parts("atari_paper", _ATARI, _ATARI_PAPER),
    "catch": _parts("catch", _CATCH, _SMALL_GRID),
    "catch_companions": _parts("catch", _CATCH, _CATCH_COMPANIONS),
    "minatar": _parts("minatar", _MINATAR, _SMALL_GRID, _MINATAR_GAME),
    "minatar_multitask": _parts("minatar_multitask", _MINATAR, _MINATAR_MULTITASK),
    "vizdoom": _parts("vizdoom", _MINATAR, _VIZDOOM),
}
get_config = environments.selector(VARIANTS, default="catch")

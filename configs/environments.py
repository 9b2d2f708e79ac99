"""Environments that the agents' configuration files share, each with the length of a run on it.

A configuration consists of parts: an environment of this module, an agent, and the values of a
variant. A later part takes precedence. A key in no part has its default.

In all files of this directory, a number without a source is this project's choice. Env frames are
agent steps times the action repeat.
"""

from collections.abc import Callable, Mapping
from typing import Any

import ml_collections

from laser_tf.sweeps import sweep_config
from laser_tf.training import run_config

Part = Mapping[str, Mapping[str, Any]]  # section -> key -> value
Variants = Mapping[str, tuple[Part, ...]]


def selector(variants: Variants, default: str) -> Callable[..., ml_collections.ConfigDict]:
    """Returns the `get_config` of a configuration file with a default variant."""

    def get_config(variant: str = default) -> ml_collections.ConfigDict:
        if variant not in variants:
            choices = ", ".join(sorted(variants))
            raise ValueError(f"variant must be one of {choices}, got {variant!r}.")
        values: dict[str, dict[str, Any]] = {}
        for part in variants[variant]:
            for section, keys in part.items():
                values[section] = {**values.get(section, {}), **keys}
        others = {"sweep": sweep_config.Config} if "sweep" in values else {}
        for section, keys in run_config.defaults(values, **others).items():
            values[section] = keys | values.get(section, {})
        return ml_collections.ConfigDict(values)

    return get_config


# The networks are too small to gain from bfloat16 and from more threads than actors leave free.
_SMALL_NETWORK = {"compute_dtype": "float32", "spare_cores": 1}

# A game, sized for two CPU cores. The protocol is IMPALA's (`laser_tf.environments.atari`).
ATARI: Part = {
    "environment": {
        "suite": "atari",
        "task": "pong",
        "num_envs": 8,  # few, so that online unrolls are fresh
        "num_threads": 2,  # threads of the emulators; 0: one per core
        "action_repeat": 4,  # env frames per agent step; IMPALA, Atari
    },
    # IMPALA, figure 3 left: 14 times as fast as the deep torso on a CPU.
    "agent": {"torso": "shallow"},
    "replay": {"frame_stack": 4},  # frames; IMPALA, Atari
    "run": {"env_frames": 4_000_000, "evaluation_episodes": 30},
}

# Takes seconds on a laptop.
CATCH: Part = {
    "environment": {"suite": "catch", "num_envs": 16},
    "agent": {"torso": "flat"},
    "replay": {"frame_stack": 1},  # frames
    "learner": _SMALL_NETWORK,
    "run": {"env_frames": 100_000, "metrics_seconds": 2.0},
}

# Games: asterix, breakout, freeway, seaquest and space_invaders.
MINATAR: Part = {
    "environment": {
        "suite": "minatar",
        "task": "breakout",
        "num_envs": 32,
        "sticky_actions": 0.1,  # probability; Young and Tian 2019, section 2
    },
    "agent": {"torso": "minatar"},
    "replay": {"frame_stack": 1},  # frames
    "learner": _SMALL_NETWORK,
    "run": {"env_frames": 1_000_000, "evaluation_episodes": 100},
}

# LASER, section A.2: the turn depends on a cue many steps earlier.
T_MAZE: Part = {
    "environment": {
        "suite": "tmaze",
        "corridor_length": 50,  # cells; crossing takes about as many agent steps
        "num_envs": 32,
    },
    "agent": {"torso": "flat"},
    "replay": {"frame_stack": 1},  # frames
    "learner": _SMALL_NETWORK,
    "run": {"env_frames": 1_000_000, "evaluation_episodes": 100},
}

# Observations are vectors; the suites dm_env and tf_agents have the same keys.
GYMNASIUM: Part = {
    "environment": {
        "suite": "gymnasium",
        "task": "CartPole-v1",
        "num_envs": 8,  # few, so that online unrolls are fresh
    },
    "agent": {"torso": "shallow"},  # for observations with images
    "replay": {"frame_stack": 1},
    "learner": _SMALL_NETWORK,
    "run": {"env_frames": 200_000, "metrics_seconds": 2.0, "evaluation_episodes": 100},
}

# After GYMNASIUM: continuous actions. For the control suite, run `make control` and use
# --config.environment.suite=dm_control --config.environment.task=cheetah/run.
PENDULUM: Part = {"environment": {"task": "Pendulum-v1"}, "run": {"env_frames": 300_000}}

# A task with a text that states the goal. Requires `make minigrid`.
BABYAI: Part = {
    "environment": {
        "suite": "minigrid",
        "task": "BabyAI-GoToRedBlueBall-v0",
        "instruction_length": 16,  # words
        "max_frames_per_episode": 500,  # env frames
    },
    "agent": {"torso": "minatar"},
    "replay": {"frame_stack": 1},  # frames
    "learner": _SMALL_NETWORK,
    "run": {"env_frames": 1_000_000, "evaluation_episodes": 100},
}

# Scenarios from pixels: basic, deadly_corridor, defend_the_center, defend_the_line,
# health_gathering, my_way_home, predict_position, take_cover. Requires `make vizdoom`.
VIZDOOM: Part = {
    "environment": {
        "suite": "vizdoom",
        "task": "health_gathering",
        "num_envs": 8,
        "max_frames_per_episode": 2_100,  # env frames: close to the scenarios' own limit
    },
    "agent": {"torso": "shallow"},
    "replay": {"frame_stack": 1},  # frames
    "run": {"env_frames": 4_000_000, "evaluation_episodes": 50},
}

# All levels. Requires `deepmind_lab` and a cluster.
DMLAB30: Part = {
    "environment": {
        "suite": "dmlab",
        "task": "all",
        "num_envs": 5,  # of each level; IMPALA, section 5.3.1: 150 actors
        "action_repeat": 4,  # env frames per agent step; IMPALA, DMLab
        "instruction_length": 16,  # words
    },
    "agent": {"torso": "deep"},  # IMPALA, figure 3 right; R2D2, section 4.2
    "replay": {"frame_stack": 1},  # frames; R2D2, section 2.3
    "run": {
        "env_frames": 10_000_000_000,  # LASER, table 1
        "replay_checkpoint_minutes": 120.0,
    },
}

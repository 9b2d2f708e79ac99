"""Environments that the agents' configuration files share, each with the length of a run on it.

Each function returns the sections `environment`, `learner`, `run` and `cluster`. The file of an
agent adds the sections `agent` and `replay`, and the optimiser to `learner`.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import ml_collections

from laser_tf import config_values
from laser_tf.environments import atari as atari_suite
from laser_tf.environments import (
    atari_protocols,
    catch,
    dmlab,
    environment_config,
    gymnasium_suite,
    minigrid,
    tmaze,
    vizdoom,
)
from laser_tf.environments import minatar as minatar_suite
from laser_tf.training import cluster_config, learner_config, run_config


def select(variants: Mapping[str, Callable[[], Any]], name: str) -> ml_collections.ConfigDict:
    """Returns the configuration of a variant.

    Args:
      variants: Function of each variant.
      name: Name of the variant, the part of `--config` after the colon.

    Raises:
      ValueError: If there is no such variant.
    """
    if name not in variants:
        close = config_values.close_names(name, variants) or sorted(variants)
        raise ValueError(
            f"variant must be one of {', '.join(sorted(variants))}, got {name!r}. "
            f"Use {' or '.join(close)}."
        )
    return variants[name]()


def atari(protocol: str = atari_protocols.IMPALA) -> ml_collections.ConfigDict:
    """Returns an Atari game, sized for two CPU cores.

    Args:
      protocol: Evaluation protocol, a name of `atari_protocols`.
    """
    suite = atari_suite.AtariConfig(
        task="pong",
        num_envs=8,  # few, so that online unrolls are fresh
        num_threads=2,  # of the emulators; 0: as many as cores
        action_repeat=4,  # env frames an agent step; IMPALA, Atari
        # No-ops, sticky actions, meaning of a lost life, action set, max frames of an episode.
        **atari_protocols.values(protocol),
    )
    # Frames are counted before action repeat.
    return _config(suite, env_frames=4_000_000, evaluation_episodes=30)


def catch_() -> ml_collections.ConfigDict:
    """Returns catch, which takes seconds on a laptop."""
    config = _config(catch.CatchConfig(num_envs=16), env_frames=100_000, metrics_seconds=2.0)
    config.learner.compute_dtype = "float32"  # the network is too small to gain from bfloat16
    return config


def minatar() -> ml_collections.ConfigDict:
    """Returns a MinAtar game: asterix, breakout, freeway, seaquest or space_invaders."""
    suite = minatar_suite.MinAtarConfig(
        task="breakout",
        num_envs=32,
        sticky_actions=0.1,  # probability; Young and Tian 2019, section 2
    )
    config = _config(suite, env_frames=1_000_000, evaluation_episodes=100)
    config.learner.compute_dtype = "float32"  # the network is too small to gain from bfloat16
    return config


def minatar_multitask() -> ml_collections.ConfigDict:
    """Returns five MinAtar games whose rewards differ a hundredfold."""
    config = minatar()
    config.environment.update(
        {
            "task": "all",  # asterix, breakout, freeway, seaquest, space_invaders
            # Without PopArt, the games with the most frequent rewards dominate the others.
            "reward_scales": (1.0, 10.0, 1.0, 1.0, 100.0),
            "num_envs": 8,  # of each task
            "max_frames_per_episode": 5_000,  # env frames
        }
    )
    return config


def t_maze() -> ml_collections.ConfigDict:
    """Returns the T-maze (LASER, section A.2), whose turn depends on a cue many steps earlier."""
    suite = tmaze.TMazeConfig(
        corridor_length=50,  # cells, of about as many agent steps
        num_envs=32,
    )
    config = _config(suite, env_frames=1_000_000, evaluation_episodes=100)
    config.learner.compute_dtype = "float32"
    return config


def gymnasium(task: str = "CartPole-v1", env_frames: int = 200_000) -> ml_collections.ConfigDict:
    """Returns an environment of gymnasium's registry whose observations are vectors.

    Args:
      task: Id in the registry.
      env_frames: Length of the run in env frames.
    """
    suite = gymnasium_suite.GymnasiumConfig(
        task=task,
        num_envs=8,  # few, so that online unrolls are fresh
    )
    config = _config(suite, env_frames=env_frames, metrics_seconds=2.0, evaluation_episodes=100)
    config.learner.compute_dtype = "float32"  # the network is too small to gain from bfloat16
    return config


def babyai() -> ml_collections.ConfigDict:
    """Returns a BabyAI task whose text states the goal. Requires `make minigrid`."""
    config = t_maze()
    # Not a MiniGridConfig, which asks the package for its tasks: it may not be installed yet.
    defaults = {field.name: field.default for field in dataclasses.fields(minigrid.MiniGridConfig)}
    config.environment = defaults | {
        "task": "BabyAI-GoToRedBlueBall-v0",
        "instruction_length": 16,  # words
        "max_frames_per_episode": 500,  # env frames
    }
    return config


def doom() -> ml_collections.ConfigDict:
    """Returns a ViZDoom scenario from pixels. Requires `make vizdoom`.

    Tasks: basic, deadly_corridor, defend_the_center, defend_the_line, health_gathering,
    my_way_home, predict_position, take_cover.
    """
    suite = vizdoom.VizDoomConfig(
        task="health_gathering",
        num_envs=8,
        max_frames_per_episode=2_100,  # env frames: close to the scenarios' own limit
    )
    return _config(suite, env_frames=4_000_000, evaluation_episodes=50)


def dmlab30() -> ml_collections.ConfigDict:
    """Returns all levels of DMLab-30. Requires `deepmind_lab` and a cluster."""
    suite = dmlab.DMLabConfig(
        task="all",
        num_envs=5,  # of each level; IMPALA, section 5.3.1: 150 actors
        action_repeat=4,  # env frames an agent step; IMPALA, DMLab
        instruction_length=16,  # words
    )
    # Frames: LASER, table 1.
    return _config(suite, env_frames=10_000_000_000, replay_checkpoint_minutes=120.0)


def _config(
    environment: environment_config.EnvironmentConfig, **run: Any
) -> ml_collections.ConfigDict:
    return ml_collections.ConfigDict(
        {
            "environment": dataclasses.asdict(environment),
            "learner": dataclasses.asdict(learner_config.LearnerConfig()),
            "run": dataclasses.asdict(run_config.Config(**run)),
            "cluster": dataclasses.asdict(cluster_config.ClusterConfig()),
        }
    )

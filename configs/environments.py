"""Environments that the agents' configuration files share, each with the length of a run on it."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import ml_collections

from laser_tf import config_values
from laser_tf.agents import agent_config
from laser_tf.environments import atari as atari_suite
from laser_tf.environments import (
    catch,
    dmlab,
    gymnasium_suite,
    minigrid,
    tmaze,
    vizdoom,
)
from laser_tf.environments import minatar as minatar_suite
from laser_tf.replay.schemes import base as schemes
from laser_tf.training import cluster_config, learner_config, run_config


class Setting(NamedTuple):
    """An environment, the length of a run on it, and the arithmetic of its networks."""

    environment: Any  # configuration of a suite, or its values
    run: run_config.Config
    compute_dtype: str = "auto"

    def config(
        self, agent: agent_config.AgentConfig, replay: schemes.ReplayScheme, **learner: Any
    ) -> ml_collections.ConfigDict:
        """Returns the configuration of an agent in this environment.

        Args:
          agent: Section `agent`.
          replay: Section `replay`.
          **learner: Keys of the section `learner`; the others have their defaults.
        """
        learner_values = learner_config.LearnerConfig(compute_dtype=self.compute_dtype, **learner)
        config = ml_collections.ConfigDict()
        config.environment = section(self.environment)
        config.learner = section(learner_values)
        config.run = section(self.run)
        config.cluster = section(cluster_config.ClusterConfig())
        config.agent = section(agent)
        config.replay = section(replay)
        return config


def section(values: Any) -> ml_collections.ConfigDict:
    """Returns a dataclass or a mapping as a section of a configuration."""
    return ml_collections.ConfigDict(
        values if isinstance(values, Mapping) else dataclasses.asdict(values)
    )


def selector(
    variants: Mapping[str, Callable[[], ml_collections.ConfigDict]], default: str
) -> Callable[..., ml_collections.ConfigDict]:
    """Returns the `get_config` of a configuration file.

    Args:
      variants: Function of each variant.
      default: Variant of a `--config` without a colon.
    """

    def get_config(variant: str = default) -> ml_collections.ConfigDict:
        """Returns the configuration of a variant, the part of `--config` after the colon.

        Raises:
          ValueError: If there is no such variant.
        """
        if variant not in variants:
            close = config_values.close_names(variant, variants) or sorted(variants)
            raise ValueError(
                f"variant must be one of {', '.join(sorted(variants))}, got {variant!r}. "
                f"Use {' or '.join(close)}."
            )
        return variants[variant]()

    return get_config


def atari(protocol: str = atari_suite.IMPALA) -> Setting:
    """Returns an Atari game, sized for two CPU cores.

    Args:
      protocol: Evaluation protocol, a key of `atari.PROTOCOLS`.
    """
    environment = atari_suite.AtariConfig(
        task="pong",
        num_envs=8,  # few, so that online unrolls are fresh
        num_threads=2,  # of the emulators; 0: as many as cores
        action_repeat=4,  # env frames an agent step; IMPALA, Atari
        # No-ops, sticky actions, meaning of a lost life, action set, max frames of an episode.
        **atari_suite.PROTOCOLS[protocol],
    )
    # Frames are counted before action repeat.
    return Setting(environment, run_config.Config(env_frames=4_000_000, evaluation_episodes=30))


# The networks of the settings with float32 are too small to gain from bfloat16.


def catch_() -> Setting:
    """Returns catch, which takes seconds on a laptop."""
    run = run_config.Config(env_frames=100_000, metrics_seconds=2.0)
    return Setting(catch.CatchConfig(num_envs=16), run, "float32")


def minatar() -> Setting:
    """Returns a MinAtar game: asterix, breakout, freeway, seaquest or space_invaders."""
    environment = minatar_suite.MinAtarConfig(
        task="breakout",
        num_envs=32,
        sticky_actions=0.1,  # probability; Young and Tian 2019, section 2
    )
    run = run_config.Config(env_frames=1_000_000, evaluation_episodes=100)
    return Setting(environment, run, "float32")


def minatar_multitask() -> Setting:
    """Returns five MinAtar games whose rewards differ a hundredfold."""
    single = minatar()
    environment = dataclasses.replace(
        single.environment,
        task="all",  # asterix, breakout, freeway, seaquest, space_invaders
        # Without PopArt, the games with the most frequent rewards dominate the others.
        reward_scales=(1.0, 10.0, 1.0, 1.0, 100.0),
        num_envs=8,  # of each task
        max_frames_per_episode=5_000,  # env frames
    )
    return single._replace(environment=environment)


def t_maze() -> Setting:
    """Returns the T-maze (LASER, section A.2), whose turn depends on a cue many steps earlier."""
    environment = tmaze.TMazeConfig(
        corridor_length=50,  # cells, of about as many agent steps
        num_envs=32,
    )
    run = run_config.Config(env_frames=1_000_000, evaluation_episodes=100)
    return Setting(environment, run, "float32")


def gymnasium(task: str = "CartPole-v1", env_frames: int = 200_000) -> Setting:
    """Returns an environment of gymnasium's registry whose observations are vectors.

    Args:
      task: Id in the registry.
      env_frames: Length of the run in env frames.
    """
    environment = gymnasium_suite.GymnasiumConfig(
        task=task,
        num_envs=8,  # few, so that online unrolls are fresh
    )
    run = run_config.Config(env_frames=env_frames, metrics_seconds=2.0, evaluation_episodes=100)
    return Setting(environment, run, "float32")


def babyai() -> Setting:
    """Returns a BabyAI task whose text states the goal. Requires `make minigrid`."""
    # Not a MiniGridConfig, which asks the package for its tasks: it may not be installed yet.
    defaults = {field.name: field.default for field in dataclasses.fields(minigrid.MiniGridConfig)}
    environment = defaults | {
        "task": "BabyAI-GoToRedBlueBall-v0",
        "instruction_length": 16,  # words
        "max_frames_per_episode": 500,  # env frames
    }
    return t_maze()._replace(environment=environment)


def doom() -> Setting:
    """Returns a ViZDoom scenario from pixels. Requires `make vizdoom`.

    Tasks: basic, deadly_corridor, defend_the_center, defend_the_line, health_gathering,
    my_way_home, predict_position, take_cover.
    """
    environment = vizdoom.VizDoomConfig(
        task="health_gathering",
        num_envs=8,
        max_frames_per_episode=2_100,  # env frames: close to the scenarios' own limit
    )
    return Setting(environment, run_config.Config(env_frames=4_000_000, evaluation_episodes=50))


def dmlab30() -> Setting:
    """Returns all levels of DMLab-30. Requires `deepmind_lab` and a cluster."""
    environment = dmlab.DMLabConfig(
        task="all",
        num_envs=5,  # of each level; IMPALA, section 5.3.1: 150 actors
        action_repeat=4,  # env frames an agent step; IMPALA, DMLab
        instruction_length=16,  # words
    )
    # Frames: LASER, table 1.
    run = run_config.Config(env_frames=10_000_000_000, replay_checkpoint_minutes=120.0)
    return Setting(environment, run)

"""Makes any environment from its configuration."""

import pathlib

from laser_tf.environments import base, environment_config, faults

_LARGEST_SEED = 2**31 - 1  # ALE's


def make_environment(
    config: environment_config.EnvironmentConfig,
    *,
    seed: int,
    num_envs: int | None = None,
    rendering: bool = False,
    fault_folder: pathlib.Path | None = None,
) -> base.BatchedEnvironment:
    """Makes a batch of games: those of the first task, then those of the second, and so on.

    Args:
      config: which.
      seed: game i is seeded with `seed + i`, up to 2**31 - 1.
      num_envs: games of each task, by default the configuration's.
      rendering: whether `render` will be called. Atari then runs every game twice, in colour too.
      fault_folder: gets the tracebacks of games that fail (`faults.FILE`); None: they are not kept.

    Raises:
      EnvironmentFailedError: for whatever else a game raises while it is made.
      ImportError: where the suite needs a package that is not installed.
      ValueError: for a seed out of range, `num_envs` below 1, a text of too many words, or tasks
        of different observations or actions.
    """
    if num_envs is None:
        num_envs = config.num_envs
    if num_envs < 1:
        raise ValueError(f"num_envs is {num_envs}: use 1 or more")
    games = num_envs * len(config.tasks)
    if not 0 <= seed <= _LARGEST_SEED + 1 - games:  # ALE plays at random with a negative one
        raise ValueError(f"seed is {seed}: use 0 to {_LARGEST_SEED + 1 - games}")
    environments = [
        _make(config, task, num_envs, seed + index * num_envs, rendering, fault_folder)
        for index, task in enumerate(config.tasks)
    ]
    if len(config.tasks) == 1 and not config.reward_scales:
        return environments[0]

    from laser_tf.environments import multi_task

    return multi_task.MultiTask(
        config.tasks, environments, config.reward_scales or (1.0,) * len(config.tasks)
    )


def _make(
    config: environment_config.EnvironmentConfig,
    task: str,
    num_envs: int,
    seed: int,
    rendering: bool,
    fault_folder: pathlib.Path | None,
) -> base.BatchedEnvironment:
    watched = faults.Faults(
        num_envs, name=task, limit=config.max_broken_episodes, folder=fault_folder
    )
    try:
        environment = _MAKERS[config.suite](config, task, num_envs, seed, rendering)
    except (ImportError, ValueError):  # what is missing, or does not fit: told as it is
        raise
    except Exception as error:  # whatever a game raises, its name belongs to it
        raise watched.failure(error) from error
    environment.faults = watched
    return environment


def _make_atari(
    config: environment_config.EnvironmentConfig,
    task: str,
    num_envs: int,
    seed: int,
    rendering: bool,
) -> base.BatchedEnvironment:
    from laser_tf.environments import atari

    return atari.Atari(
        task,
        num_envs,
        seed,
        num_threads=config.num_threads,
        action_repeat=config.action_repeat,
        no_op_max=config.no_op_max,
        max_frames_per_episode=config.max_frames_per_episode,
        sticky_actions=config.sticky_actions,
        full_action_space=config.full_action_space,
        life_loss_is_end=config.life_loss_is_end,
        rendering=rendering,
    )


def _make_minatar(
    config: environment_config.EnvironmentConfig, task: str, num_envs: int, seed: int, _: bool
) -> base.BatchedEnvironment:
    from laser_tf.environments import minatar

    return minatar.MinAtar(
        task,
        num_envs,
        seed,
        sticky_actions=config.sticky_actions,
        max_frames_per_episode=config.max_frames_per_episode,
        # One agent for several games needs the same channels of all.
        channels=minatar.MOST_CHANNELS if len(config.tasks) > 1 else None,
    )


def _make_catch(
    config: environment_config.EnvironmentConfig, task: str, num_envs: int, seed: int, _: bool
) -> base.BatchedEnvironment:
    from laser_tf.environments import catch

    return catch.Catch(num_envs, seed)


def _make_tmaze(
    config: environment_config.EnvironmentConfig, task: str, num_envs: int, seed: int, _: bool
) -> base.BatchedEnvironment:
    from laser_tf.environments import tmaze

    return tmaze.TMaze(num_envs, seed, corridor_length=config.corridor_length)


def _make_vizdoom(
    config: environment_config.EnvironmentConfig, task: str, num_envs: int, seed: int, _: bool
) -> base.BatchedEnvironment:
    from laser_tf.environments import vizdoom

    return vizdoom.VizDoom(
        task,
        num_envs,
        seed,
        num_threads=config.num_threads,
        action_repeat=config.action_repeat,
        max_frames_per_episode=config.max_frames_per_episode,
    )


def _make_minigrid(
    config: environment_config.EnvironmentConfig, task: str, num_envs: int, seed: int, _: bool
) -> base.BatchedEnvironment:
    from laser_tf.environments import minigrid

    return minigrid.MiniGrid(
        task,
        num_envs,
        seed,
        instruction_length=config.instruction_length,
        max_frames_per_episode=config.max_frames_per_episode,
    )


def _make_dmlab(
    config: environment_config.EnvironmentConfig, task: str, num_envs: int, seed: int, _: bool
) -> base.BatchedEnvironment:
    from laser_tf.environments import dmlab

    return dmlab.DMLab(
        task,
        num_envs,
        seed,
        action_repeat=config.action_repeat,
        max_frames_per_episode=config.max_frames_per_episode,
        hold_out=config.hold_out,
        level_cache=config.level_cache,
        dataset_path=config.dataset_path,
        instruction_length=config.instruction_length,
        reply_seconds=config.reply_seconds,
    )


_MAKERS = {
    "atari": _make_atari,
    "minatar": _make_minatar,
    "catch": _make_catch,
    "tmaze": _make_tmaze,
    "vizdoom": _make_vizdoom,
    "minigrid": _make_minigrid,
    "dmlab": _make_dmlab,
}

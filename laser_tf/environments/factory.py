"""Makes the environments of any configuration."""

import contextlib
import pathlib

from laser_tf import errors, types
from laser_tf.environments import base, environment_config, faults, multi_task

_LARGEST_SEED = 2**31 - 1  # ALE's


def make_environment(
    config: environment_config.EnvironmentConfig,
    *,
    seed: int,
    num_envs: int | None = None,
    rendering: bool = False,
    fault_folder: pathlib.Path | None = None,
) -> base.BatchedEnvironment:
    """Makes a batch of environments: those of the first task, then of the second, and so on.

    Args:
      config: of a suite.
      seed: environment i is seeded with `seed + i`, up to 2**31 - 1.
      num_envs: environments of each task, by default the configuration's.
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
        raise errors.ConfigError(f"num_envs is {num_envs}: use 1 or more")
    together = num_envs * len(config.tasks)
    if not 0 <= seed <= _LARGEST_SEED + 1 - together:  # ALE plays at random with a negative one
        raise errors.ConfigError(f"seed is {seed}: use 0 to {_LARGEST_SEED + 1 - together}")
    environments = [
        _make(config, task, num_envs, seed + index * num_envs, rendering, fault_folder)
        for index, task in enumerate(config.tasks)
    ]
    if len(environments) == 1 and not config.reward_scales:
        return environments[0]
    return multi_task.MultiTask(
        config.tasks, environments, config.reward_scales or (1.0,) * len(config.tasks)
    )


def environment_spec(config: environment_config.EnvironmentConfig) -> types.EnvironmentSpec:
    """What an agent that plays these environments must fit: one is made, and closed again.

    Raises:
      EnvironmentFailedError, ImportError, ValueError: see `make_environment`.
    """
    with contextlib.closing(make_environment(config, seed=0, num_envs=1)) as environment:
        return environment.spec()


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
        environment = config.make(task, num_envs, seed, rendering)
    except errors.UserError:  # A missing package or a value that does not fit.
        raise
    except Exception as error:  # whatever a game raises, its name belongs to it
        raise watched.failure(error) from error
    environment.faults = watched
    environment.tasks = (task,)
    limits = (environment.max_steps_per_episode, config.max_steps_per_episode)
    environment.max_steps_per_episode = min(filter(None, limits), default=0)
    return environment

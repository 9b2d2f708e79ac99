"""Creates the environments of any configuration."""

import contextlib
import pathlib

import numpy as np

from laser_tf import errors, observations, types
from laser_tf.environments import base, environment_config, faults, multi_task

_MAX_SEED = 2**31 - 1  # Of ALE.


def make_environment(
    config: environment_config.EnvironmentConfig,
    *,
    seed: int,
    num_envs: int | None = None,
    rendering: bool = False,
    traceback_directory: pathlib.Path | None = None,
) -> base.BatchedEnvironment:
    """Creates a batch of environments: `num_envs` of the first task, then of the second, and so on.

    Environment i is seeded with `seed + i`. If `rendering`, `render` may be called, and Atari runs
    each game twice, also in colour. `traceback_directory` gets a file of faults.

    Raises:
      EnvironmentFailedError: For any other error of an environment.
      ImportError: If the suite needs a package that is not installed.
      ValueError: For an argument out of range, or tasks with different observations or actions.
    """
    if num_envs is None:
        num_envs = config.num_envs
    if num_envs < 1:
        raise errors.ConfigError(f"num_envs must be 1 or more, got {num_envs}.")
    together = num_envs * len(config.tasks)
    max_seed = _MAX_SEED + 1 - together
    if not 0 <= seed <= max_seed:  # ALE replaces a negative seed by a random seed.
        raise errors.ConfigError(f"seed must be between 0 and {max_seed}, got {seed}.")
    with contextlib.ExitStack() as on_error:
        environments = []
        for index, task in enumerate(config.tasks):
            own_seed = seed + index * num_envs
            made = _make(config, task, num_envs, own_seed, rendering, traceback_directory)
            on_error.callback(made.close)
            environments.append(made)
        environment = (
            made if len(environments) == 1 else multi_task.MultiTask(config.tasks, environments)
        )
        on_error.pop_all()
    if config.reward_scales:
        scales = np.array(config.reward_scales, np.float32)
        environment.reward_scales = scales[environment.task_ids]
    return environment


def environment_spec(config: environment_config.EnvironmentConfig) -> types.EnvironmentSpec:
    """Creates one environment, closes it, and returns the specs that an agent must fit.

    A batch that user code creates is checked, too. Raises the errors of `make_environment`.
    """
    with contextlib.closing(make_environment(config, seed=0, num_envs=1)) as environment:
        spec = environment.spec()
    if config.user_creates_batch and config.num_envs > 1:
        with contextlib.closing(make_environment(config, seed=0)) as environment:
            if environment.spec() != spec:
                raise errors.ConfigError(
                    f"{config.task} must return environments with {observations.describe(spec)} "
                    f"for each num_envs, got {observations.describe(environment.spec())} for "
                    f"num_envs={config.num_envs}. Define the same spaces for each number."
                )
    return spec


def _make(
    config: environment_config.EnvironmentConfig,
    task: str,
    num_envs: int,
    seed: int,
    rendering: bool,
    traceback_directory: pathlib.Path | None,
) -> base.BatchedEnvironment:
    watched = faults.Faults(
        num_envs, name=task, limit=config.max_broken_episodes, folder=traceback_directory
    )
    try:
        environment = config.make(task, num_envs, seed, rendering)
    except errors.UserError:  # A missing package or a value that does not fit.
        raise
    except Exception as error:  # User code and engines raise anything.
        raise watched.failure(error) from error
    environment.faults = watched
    environment.tasks = (task,)
    environment.max_steps_per_episode = config.max_steps_per_episode
    return environment

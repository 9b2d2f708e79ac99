"""Plays environments with given or random actions, for the tests beside it."""

import contextlib

import numpy as np
import tree

from laser_tf.environments import environment_config, factory


def make(suite, task, *, seed=0, num_envs=2, rendering=False, **options):
    """Makes an environment that closes when its `with` block ends."""
    options.setdefault("action_repeat", 4 if suite in ("atari", "vizdoom") else 1)
    config = environment_config.EnvironmentConfig(
        suite=suite, task=task, num_envs=num_envs, **options
    )
    return contextlib.closing(factory.make_environment(config, seed=seed, rendering=rendering))


def random_actions(environment, steps, seed=0):
    """Actions int64 [steps, N]."""
    num_actions = environment.action_spec().num_values
    return np.random.default_rng(seed).integers(num_actions, size=[steps, environment.num_envs])


def play(environment, actions):
    """Resets and plays actions [T, N]; returns an EnvOutput of arrays [T + 1, N, ...]."""
    rows = [environment.reset(), *(environment.step(action) for action in actions)]
    return map_columns(lambda *column: np.stack(column), *rows)


def map_columns(function, *outputs):
    """An EnvOutput of what a function makes of each leaf."""
    return tree.map_structure(function, *outputs)

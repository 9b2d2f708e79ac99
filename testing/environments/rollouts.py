"""Plays environments with given or random actions, for the tests beside it."""

import contextlib

# Here already: a process can load it only once, and some tests put `sys.modules` back.
import ale_py  # noqa: F401
import numpy as np
import tree

from laser_tf.environments import factory, suites


def make(suite, task, *, seed=0, num_envs=2, rendering=False, **options):
    """Makes an environment that closes when its `with` block ends."""
    config = suites.config_class(suite)(task=task, num_envs=num_envs, **options)
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


def leaves(observation):
    """The arrays of a nest."""
    return tree.flatten(observation)

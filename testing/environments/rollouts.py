"""Creates environments and steps them with given or random actions."""

import contextlib

# A process can load it only once, and some tests restore `sys.modules`.
import ale_py  # noqa: F401
import numpy as np
import tree

from laser_tf import types
from laser_tf.environments import factory, suites


def make(suite, task, *, seed=0, num_envs=2, rendering=False, traceback_directory=None, **options):
    """Makes an environment that closes when its `with` block ends."""
    config = suites.config_class(suite)(task=task, num_envs=num_envs, **options)
    return contextlib.closing(
        factory.make_environment(
            config, seed=seed, rendering=rendering, traceback_directory=traceback_directory
        )
    )


def random_actions(environment, steps, seed=0):
    """Returns actions [steps, N, ...]."""
    generator = np.random.default_rng(seed)
    return np.stack([environment.random_actions(generator) for _ in range(steps)])


def run(environment, actions):
    """Resets, takes actions [T, N, ...] and returns an EnvOutput of arrays [T + 1, N, ...]."""
    outputs = [environment.reset(), *(environment.step(action) for action in actions)]
    return map_columns(lambda *column: np.stack(column), *outputs)


def map_columns(function, *outputs):
    """Returns an EnvOutput of the results of a function for each leaf."""
    return tree.map_structure(function, *outputs)


def assert_same(expected, actual, fields=types.EnvOutput._fields):
    """Asserts that fields of two EnvOutputs have the same values."""
    for name in fields:
        tree.map_structure(
            np.testing.assert_array_equal, getattr(expected, name), getattr(actual, name)
        )

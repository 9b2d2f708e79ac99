"""Stand-ins for packages that are not installed: DeepMind Lab, dm_control, MiniGrid, ViZDoom."""

import contextlib
import pathlib
import sys
from unittest import mock

import gymnasium

# Loaded before `installed`, which removes the modules that it loads: with a second copy of these
# modules, workers could not be pickled.
from laser_tf.environments import python_environments, vector_suite  # noqa: F401

_FOLDER = str(pathlib.Path(__file__).parent)


@contextlib.contextmanager
def installed():
    """Lets this process, and workers that it starts, import the stand-ins."""
    with (
        mock.patch.object(sys, "path", [_FOLDER, *sys.path]),
        mock.patch.dict(sys.modules),
        mock.patch.dict(gymnasium.registry),
    ):
        yield

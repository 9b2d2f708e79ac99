"""Processes that start fast: forks of a process that has imported TensorFlow."""

import multiprocessing
import os
import tempfile
from multiprocessing import context as contexts
from multiprocessing import forkserver
from unittest import mock

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["launch.session", "laser_tf.plotting.curves", "testing.replay_processes"]
)


def context() -> contexts.ForkServerContext:
    """Returns the multiprocessing context that starts the processes."""
    with mock.patch.dict(os.environ, variables(), clear=True):
        forkserver.ensure_running()
    return _CONTEXT


def variables() -> dict[str, str]:
    """Returns the environment variables of commands and forks."""
    # Importing jax sets variables of TensorFlow that make the commands print messages.
    # Matplotlib warns if its default directory, the home, cannot be written.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    return kept | {"MPLCONFIGDIR": tempfile.gettempdir()}

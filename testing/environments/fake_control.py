"""Puts a stand-in for dm_control, `fake_packages`, where environments look for the package."""

import contextlib
import pathlib
import sys
from unittest import mock

_FOLDER = str(pathlib.Path(__file__).parent / "fake_packages")


@contextlib.contextmanager
def installed():
    """Within it, workers that start import the stand-in: they get this process's `sys.path`."""
    with mock.patch.object(sys, "path", [_FOLDER, *sys.path]):
        yield

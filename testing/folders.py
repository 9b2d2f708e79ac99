"""Temporary directories of tests."""

import pathlib
import tempfile

from absl.testing import absltest, parameterized


def of_class(test: type[absltest.TestCase]) -> pathlib.Path:
    """Returns an empty directory that all tests of a class share."""
    return pathlib.Path(test.enterClassContext(tempfile.TemporaryDirectory()))


class FolderTest(parameterized.TestCase):
    """Has an empty directory `_folder`, and the path `_workdir` of a run in it, not yet created."""

    def setUp(self):
        super().setUp()
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self._workdir = self._folder / "run"

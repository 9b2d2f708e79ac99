"""Tests with a temporary directory."""

import pathlib
import tempfile

from absl.testing import parameterized


class FolderTest(parameterized.TestCase):
    """Has an empty directory `_folder`, and the path `_workdir` of a run in it, not yet created."""

    def setUp(self):
        super().setUp()
        self._folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        self._workdir = self._folder / "run"

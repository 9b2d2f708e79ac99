"""A disk without room for replay, for tests of what a run does.

A limit on the size of files stands for it, which takes no rights.
"""

import pathlib
import tempfile

from absl.testing import absltest

LIMIT = 60_000  # bytes; weights have 46,000, 500 unrolls of catch over 65,000
FLAGS = (
    "--config.run.metrics_seconds=60",
    "--config.run.evaluation_episodes=2",
    "--config.run.checkpoint_minutes=0.02",
    "--config.run.replay_checkpoint_minutes=0.02",
)


class FullDiskCase(absltest.TestCase):
    """Has a folder for a run, and looks for what is left of saving in it."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.workdir = pathlib.Path(folder.name) / "run"

    def assert_no_parts(self, folder: pathlib.Path) -> None:
        self.assertEmpty(list(folder.rglob("*_saving")) + list(folder.rglob("unfinished")))

"""A disk without room for replay: what a run does, as a process.

A limit on the size of files stands for it, which takes no rights: weights fit, replay does not.
"""

import json
import pathlib
import resource
import tempfile

from absl.testing import absltest

from testing import commands

LIMIT = 60_000  # bytes; weights have 46,000, 500 unrolls of catch over 65,000
FLAGS = (
    "--config.run.metrics_seconds=60",
    "--config.run.evaluation_episodes=2",
    "--config.run.checkpoint_minutes=0.02",
    "--config.run.replay_checkpoint_minutes=0.02",
)


class FullDiskTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._workdir = pathlib.Path(folder.name) / "run"

    def test_a_run_goes_on_and_says_so_once(self):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))  # children inherit it
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, before)
        code, _, errors = commands.run(
            "train",
            "--config=configs/laser_catch.py",
            *FLAGS,
            "--config.run.env_frames=30000",
            f"--workdir={self._workdir}",
        )
        self.assertEqual(code, 0, errors)
        self.assertEqual(errors.count("training goes on and tries again"), 1, errors)
        self.assertRegex(errors, "cannot save replay: .*; whoever resumes has what was saved")
        summary = json.loads((self._workdir / "evaluation.json").read_text())
        self.assertEqual(summary["env_frames"], 30_000)
        self._assert_no_parts(self._workdir / "checkpoints")

    def _assert_no_parts(self, folder: pathlib.Path) -> None:
        self.assertEmpty(list(folder.rglob("*_saving")) + list(folder.rglob("unfinished")))


if __name__ == "__main__":
    absltest.main()

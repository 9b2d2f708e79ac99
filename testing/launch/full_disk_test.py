"""A disk without room for replay: what a run does, as a process.

Weights fit, replay does not, see `full_disk_case`.
"""

import json

from absl.testing import absltest

from testing import commands, processes
from testing.launch.full_disk_case import FLAGS, LIMIT, FullDiskCase


class FullDiskTest(FullDiskCase):
    def test_run_continues_and_logs_one_warning(self):
        with processes.full_disk(LIMIT):
            code, _, errors = commands.run(  # Not forked from a process without the limit.
                "train",
                "--config=configs/laser.py:catch",
                *FLAGS,
                "--config.run.env_frames=12000",
                f"--workdir={self.workdir}",
            )
        self.assertEqual(code, 0, errors)
        self.assertEqual(errors.count("training continues and tries again"), 1, errors)
        self.assertIn("cannot save replay", errors)
        summary = json.loads((self.workdir / "evaluation.json").read_text())
        self.assertEqual(summary["env_frames"], 12_000)
        self.assert_no_parts(self.workdir / "checkpoints")


if __name__ == "__main__":
    absltest.main()

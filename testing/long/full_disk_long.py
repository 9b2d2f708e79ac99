"""A sweep on a disk without room for replay; see `full_disk_test` for a run."""

import re
import resource
import subprocess
import time

import pytest
from absl.testing import absltest

from testing import commands
from testing.launch.full_disk_case import FLAGS, LIMIT, FullDiskCase

pytestmark = pytest.mark.long


class FullDiskTest(FullDiskCase):
    def test_sweep_finishes_and_logs_failed_saves_once(self):
        process = commands.start(
            "sweep",
            "--config=configs/sweeps.py:catch",
            *FLAGS,
            "--search_space=agent.entropy_cost=grid(0.005,0.01)",
            "--config.run.env_frames=10000",
            f"--workdir={self.workdir}",
        )
        self.addCleanup(process.kill)
        # Not for all: Ray makes a large file in memory for its objects.
        resource.prlimit(self._wait_for_replay(process), resource.RLIMIT_FSIZE, (LIMIT, LIMIT))
        _, errors = process.communicate(timeout=400)
        self.assertEqual(process.returncode, 0, errors)
        self.assertNotIn("Restarting", errors)
        log = (self.workdir / "logs/replay.log").read_text()
        # One line for all attempts while the sweep runs, and one at its end.
        self.assertEqual(log.count("Cannot save replay"), 2, log)
        self.assert_no_parts(self.workdir)

    def _wait_for_replay(self, process: subprocess.Popen) -> int:
        """Returns the process that serves replay."""
        log = self.workdir / "logs/replay.log"
        while not log.exists() or not (found := re.search(r"process (\d+) on", log.read_text())):
            self.assertIsNone(process.poll())
            time.sleep(0.1)
        return int(found[1])


if __name__ == "__main__":
    absltest.main()

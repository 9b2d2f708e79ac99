"""A run whose learner keeps its sequences itself, as a process: killed and resumed."""

import re
import signal

import pytest
from absl.testing import absltest

from testing import commands, processes

FLAGS = (
    "--config=configs/r2d2.py:tmaze",
    "--config.replay.scheme=contextual",
    "--config.replay.warm_up=1000",
    "--config.learner.jit_compile=off",
    "--config.run.env_frames=60000",
    "--config.replay.batch_size=4",
    "--config.run.checkpoint_minutes=0.01",
    "--config.run.replay_checkpoint_minutes=0.01",
    "--config.run.metrics_seconds=60",
)


class ContextualReplayTest(commands.CommandTest):
    @pytest.mark.long
    def test_killed_run_resumes_with_its_sequences(self):
        process = commands.start("train", *FLAGS, f"--workdir={self.workdir}")
        self.addCleanup(process.kill)
        checkpoints = self.workdir / "checkpoints"
        processes.wait_until((checkpoints / "sequences_previous.zip").exists, 300)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        again = commands.start("train", *FLAGS, f"--workdir={self.workdir}")
        self.addCleanup(again.kill)
        self.assertIn("frames", again.stdout.readline())
        again.send_signal(signal.SIGINT)
        _, errors = again.communicate(timeout=300)
        self.assertEqual(again.returncode, -signal.SIGINT, errors)
        self.assertIn("Resuming", errors)
        begun = re.search(r"starts with ([\d,]+) sequences", errors)
        self.assertGreater(int(begun[1].replace(",", "")), 10, errors)
        self.assertNotIn("damaged", errors)
        self.assertEmpty(list(checkpoints.glob("*_saving*")))


if __name__ == "__main__":
    absltest.main()

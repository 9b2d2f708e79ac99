"""A run whose learner keeps its sequences itself, as a process: killed, resumed, refused."""

import pathlib
import re
import signal
import tempfile

import pytest
from absl.testing import absltest, parameterized

from testing import commands, messages, replay_processes

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


class ContextualReplayTest(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._workdir = pathlib.Path(folder.name) / "run"

    @pytest.mark.long
    def test_a_killed_run_goes_on_with_its_sequences(self):
        process = commands.start("train", *FLAGS, f"--workdir={self._workdir}")
        self.addCleanup(process.kill)
        checkpoints = self._workdir / "checkpoints"
        replay_processes.wait_until((checkpoints / "sequences_previous.zip").exists, 300)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        again = commands.start("train", *FLAGS, f"--workdir={self._workdir}")
        self.addCleanup(again.kill)
        self.assertIn("frames", again.stdout.readline())
        again.send_signal(signal.SIGINT)
        _, errors = again.communicate(timeout=300)
        self.assertEqual(again.returncode, -signal.SIGINT, errors)
        self.assertIn("resuming", errors)
        begun = re.search(r"starts with ([\d,]+) sequences", errors)
        self.assertGreater(int(begun[1].replace(",", "")), 10, errors)
        self.assertNotIn("damaged", errors)
        self.assertEmpty(list(checkpoints.glob("*_saving*")))

    @parameterized.parameters(
        (("--config.replay.scheme=contextul",), "contextual"),
        (("--config.replay.priority_exponent=0",), "priority_exponent"),
        (("--config.replay.uniform_share=2",), "uniform_share", 2.0),
        (("--config.cluster.actors=2", "--config.cluster.learners=2"), "learners"),
    )
    def test_invalid_flags_are_rejected_and_nothing_written(self, flags, *named):
        code, _, errors = commands.run("train", *FLAGS, *flags, f"--workdir={self._workdir}")
        self.assertNotEqual(code, 0)
        lines = [line for line in errors.splitlines() if not line.startswith("no private network")]
        self.assertLen(lines, 1, errors)
        messages.assert_names(lines[0], *named)
        self.assertFalse(self._workdir.exists())

    def test_benchmark_of_parts_needs_reverb(self):
        code, _, errors = commands.run("benchmark", *FLAGS[:2])
        self.assertNotEqual(code, 0)
        messages.assert_names(errors, "replay.scheme", "tools.sequence_store_benchmark")


if __name__ == "__main__":
    absltest.main()

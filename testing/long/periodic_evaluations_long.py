"""`launch.train` whose evaluator is killed or hangs, and the log of a resumed run."""

import contextlib
import os
import pathlib
import signal
import subprocess

import pytest
from absl.testing import absltest

from laser_tf.monitoring import evaluation_log
from testing import commands, folders, processes

pytestmark = pytest.mark.long

FLAGS = (
    "--config=configs/laser.py:catch",
    "--config.run.env_frames=100000000",
    "--config.run.evaluate_every_env_frames=1000",
    "--config.run.periodic_evaluation_episodes=4",
)
TIMEOUT_SECONDS = 400  # Seconds are enough on an idle machine.


def _workers() -> set[int]:
    """Returns the worker processes of all runs on this machine."""
    workers = set()
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # It has ended.
            if b"worker_pool.serve" in path.read_bytes():
                workers.add(int(path.parent.name))
    return workers


class PeriodicEvaluationsTest(folders.FolderTest):
    def _train(self) -> subprocess.Popen:
        process = commands.start("train", *FLAGS, f"--workdir={self._workdir}")
        self.addCleanup(process.kill)
        return process

    def _wait_for_evaluations(self, number: int) -> list[int]:
        """Waits for a number of evaluations; returns their env frames."""
        log = evaluation_log.EvaluationLog(self._workdir)
        processes.wait_until(lambda: len(log.read()) >= number, TIMEOUT_SECONDS)
        return [row.env_frames for row in log.read()]

    def test_training_continues_without_its_evaluator(self):
        others = _workers()
        run = self._train()
        before = self._wait_for_evaluations(1)
        (evaluator,) = _workers() - others
        os.kill(evaluator, signal.SIGKILL)
        after = self._wait_for_evaluations(len(before) + 2)
        self.assertGreater(after[-1], before[-1])
        (other,) = _workers() - others
        self.assertNotEqual(other, evaluator)
        os.kill(other, signal.SIGSTOP)  # A hanging evaluator does not delay the end.
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual(run.returncode, -signal.SIGINT, errors)
        self.assertFalse(pathlib.Path(f"/proc/{other}").exists())
        self.assertLen([line for line in errors.splitlines() if "exit code -9" in line], 1, errors)
        again = self._train()
        resumed = self._wait_for_evaluations(
            len(evaluation_log.EvaluationLog(self._workdir).read()) + 1
        )
        self.assertEqual(resumed[: len(after)], after)
        again.kill()
        again.communicate()


if __name__ == "__main__":
    absltest.main()

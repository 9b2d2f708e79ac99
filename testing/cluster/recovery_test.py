"""A run on several processes: each is killed, and the same command resumes."""

import csv
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable

import pytest
from absl.testing import absltest

from laser_tf.cluster import fleet, role_process
from laser_tf.workdir import run_directory
from testing import commands, messages

_TIMEOUT_SECONDS = 240.0
_NEW_SECONDS = 5.0  # Since the driver has written `roles.csv`.


class RecoveryTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self._workdir = pathlib.Path(folder.name) / "run"

    def _start(self, env_frames: int, actors: int = 2) -> subprocess.Popen:
        # A previous command's file would describe processes that no longer exist.
        (self._workdir / fleet.ROLES).unlink(missing_ok=True)
        process = commands.start(
            "train",
            "--config=configs/laser.py:catch",
            f"--workdir={self._workdir}",
            f"--config.cluster.actors={actors}",
            "--config.environment.num_envs=4",
            "--config.run.checkpoint_minutes=0.02",
            "--config.run.replay_checkpoint_minutes=0.05",
            f"--config.run.env_frames={env_frames}",
        )
        self.addCleanup(process.kill)
        return process

    def _roles(self) -> dict[str, dict[str, str]]:
        path = self._workdir / fleet.ROLES
        if not path.exists() or time.time() - path.stat().st_mtime > _NEW_SECONDS:
            return {}
        return {row["role"]: row for row in csv.DictReader(path.read_text().splitlines())}

    def _process_of(self, role: str) -> int:
        return int(self._roles().get(role, {}).get("pid") or 0)

    def _learns(self) -> bool:
        roles = self._roles()
        states = [roles.get(name, {}).get("status") for name in ("learner", "replay")]
        return states == ["running", "running"] and run_directory.has_checkpoint(self._workdir)

    def _wait(self, process: subprocess.Popen, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while not condition():
            if process.poll() is not None:
                self.fail(f"ended instead of {what}: {process.communicate()}")
            self.assertLess(time.monotonic(), deadline, f"{what}: {self._roles()}")
            time.sleep(0.2)

    def _most_niceness(self, role: str) -> int | None:
        """Returns the highest niceness of a role's threads; None without a process."""
        process = self._process_of(role)
        try:
            threads = [int(path.name) for path in pathlib.Path(f"/proc/{process}/task").iterdir()]
            return max(os.getpriority(os.PRIO_PROCESS, thread) for thread in threads)
        except (FileNotFoundError, ProcessLookupError):
            return None

    def _resumed(self) -> int:
        """Returns how often a learner has resumed."""
        path = self._workdir / role_process.LOGS / "learner.log"
        return path.read_text().count("Resumed at") if path.exists() else 0

    def test_killed_learner_resumes(self):
        process = self._start(100_000_000, actors=1)
        self._wait(process, self._learns, "learning")
        self._kill_and_wait(process, "learner")
        self.assertEqual(self._resumed(), 1)
        self._terminate(process)

    @pytest.mark.long
    def test_run_survives_the_end_of_every_process(self):
        process = self._start(100_000_000)
        self._wait(process, self._learns, "learning")
        # Ray's workers would let every other program go first.
        own = os.getpriority(os.PRIO_PROCESS, 0)
        self.assertEqual(self._most_niceness("learner"), own)
        nice = min(own + 10, 19)
        self._wait(process, lambda: self._most_niceness("actor_00") == nice, "a nice actor")
        for role in ("actor_00", "replay", "learner"):
            self._kill_and_wait(process, role)
        self.assertEqual(self._resumed(), 1)

        process.kill()
        process.communicate()
        process = self._start(100_000_000)
        self._wait(process, self._learns, "resuming")
        self.assertEqual(self._resumed(), 2)
        self._terminate(process)

    def _kill_and_wait(self, process: subprocess.Popen, role: str) -> None:
        """Kills the process of a role and waits until its next process works."""
        killed = self._process_of(role)
        os.kill(killed, signal.SIGKILL)

        def is_replaced() -> bool:
            return self._process_of(role) not in (0, killed) and self._learns()

        self._wait(process, is_replaced, f"{role}'s restart")

    def _terminate(self, process: subprocess.Popen) -> None:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=_TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, -signal.SIGTERM, errors)
        messages.assert_names(errors, "saved")

    @pytest.mark.long
    def test_run_ends_with_its_budget_and_an_evaluation(self):
        process = self._start(40_000)
        _, errors = process.communicate(timeout=_TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 0, errors)
        summary = json.loads((self._workdir / "evaluation.json").read_text())
        self.assertGreaterEqual(summary["env_frames"], 40_000)
        rows = csv.DictReader((self._workdir / fleet.ROLES).read_text().splitlines())
        statuses = {row["role"]: row["status"] for row in rows}
        self.assertEqual(statuses["learner"], "finished")
        self.assertNotIn("Traceback", errors)


if __name__ == "__main__":
    absltest.main()

"""A run on several processes, of which each is killed once, and the head of Ray with them."""

import csv
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable

from absl.testing import absltest

from laser_tf.cluster import fleet, role_process
from laser_tf.host import folder_traces
from testing import commands

_SECONDS = 240.0  # for anything that has to happen


class FleetTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self._workdir = pathlib.Path(folder.name) / "run"

    def _start(self, *arguments: str) -> subprocess.Popen:
        process = commands.start(
            "train",
            "--config=configs/laser_catch.py",
            f"--workdir={self._workdir}",
            "--config.cluster.actors=2",
            "--config.environment.num_envs=4",
            "--config.run.checkpoint_minutes=0.02",
            "--config.run.replay_checkpoint_minutes=0.05",
            *arguments,
        )
        self.addCleanup(process.kill)
        return process

    def _roles(self) -> dict[str, dict[str, str]]:
        path = self._workdir / fleet.ROLES
        if not path.exists():
            return {}
        return {row["role"]: row for row in csv.DictReader(path.read_text().splitlines())}

    def _wait(self, process: subprocess.Popen, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _SECONDS
        while not condition():
            if process.poll() is not None:
                self.fail(f"ended instead of {what}: {process.communicate()}")
            self.assertLess(time.monotonic(), deadline, f"{what}: {self._roles()}")
            time.sleep(0.2)

    def _process_of(self, role: str) -> int:
        text = self._roles().get(role, {}).get("process")
        return int(text) if text else 0

    def _log(self, role: str) -> str:
        path = self._workdir / role_process.LOGS / f"{role}.log"
        return path.read_text() if path.exists() else ""

    def _learns(self) -> bool:
        roles = self._roles()
        states = [roles.get(name, {}).get("state", "") for name in ("learner", "replay")]
        return states == ["learns", "serves"]

    def _is_saved(self) -> bool:
        return folder_traces.has_checkpoint(self._workdir)

    def test_each_role_may_die_and_the_run_ends_as_it_should(self):
        process = self._start("--config.run.env_frames=120000")
        self._wait(process, self._learns, "learning")
        for role in ("actor_00", "replay", "learner"):
            self._wait(process, self._is_saved, "a checkpoint")
            before = self._process_of(role)
            os.kill(before, signal.SIGKILL)

            def is_replaced(role=role, before=before) -> bool:
                return self._process_of(role) not in (0, before) and self._learns()

            self._wait(process, is_replaced, f"{role}'s return")
        output, errors = process.communicate(timeout=2 * _SECONDS)
        self.assertEqual(process.returncode, 0, errors)
        summary = json.loads((self._workdir / "evaluation.json").read_text())
        self.assertGreaterEqual(summary["env_frames"], 120_000)
        self.assertGreater(summary["mean_return"], 0.8)
        self.assertIn("resumed at", self._log("learner"))
        for role in ("actor_00", "replay", "learner"):
            self.assertIn(f"{role}: its process has died", errors)
        self.assertNotIn("Traceback", output + errors)

    def test_a_run_goes_on_without_its_driver_and_ends_when_it_is_told(self):
        process = self._start()
        self._wait(process, lambda: self._learns() and self._is_saved(), "learning")
        drivers = subprocess.run(
            ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True
        ).stdout.split()
        learner = self._process_of("learner")
        os.kill(int(drivers[0]), signal.SIGKILL)
        self._wait(
            process,
            lambda: self._process_of("learner") not in (0, learner) and self._learns(),
            "another driver's learner",
        )
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=_SECONDS)
        self.assertEqual(process.returncode, -signal.SIGTERM, errors)
        self.assertIn("it is started again", errors)
        self.assertIn("stopped and saved; the same command resumes", errors)
        self.assertRegex(self._log("learner"), "resumed at [0-9,]+ frames")


if __name__ == "__main__":
    absltest.main()

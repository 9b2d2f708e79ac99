"""A run on several processes, for tests that kill them."""

import csv
import pathlib
import subprocess
import tempfile
import time
from collections.abc import Callable

from absl.testing import absltest

from laser_tf.cluster import role_process, roles
from laser_tf.workdir import layout
from testing import commands

SECONDS = 240.0  # for anything that has to happen


class FleetCase(absltest.TestCase):
    """Starts a run on catch with two actors, and waits for what its folder says of it."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.workdir = pathlib.Path(folder.name) / "run"

    def start(self, *arguments: str) -> subprocess.Popen:
        process = commands.start(
            "train",
            "--config=configs/laser.py:catch",
            f"--workdir={self.workdir}",
            "--config.cluster.actors=2",
            "--config.environment.num_envs=4",
            "--config.run.checkpoint_minutes=0.02",
            "--config.run.replay_checkpoint_minutes=0.05",
            *arguments,
        )
        self.addCleanup(process.kill)
        return process

    def _roles(self) -> dict[str, dict[str, str]]:
        path = self.workdir / roles.ROLES
        if not path.exists():
            return {}
        return {row["role"]: row for row in csv.DictReader(path.read_text().splitlines())}

    def wait(self, process: subprocess.Popen, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + SECONDS
        while not condition():
            if process.poll() is not None:
                self.fail(f"ended instead of {what}: {process.communicate()}")
            self.assertLess(time.monotonic(), deadline, f"{what}: {self._roles()}")
            time.sleep(0.2)

    def process_of(self, role: str) -> int:
        text = self._roles().get(role, {}).get("process")
        return int(text) if text else 0

    def log(self, role: str) -> str:
        path = self.workdir / role_process.LOGS / f"{role}.log"
        return path.read_text() if path.exists() else ""

    def learns(self) -> bool:
        roles = self._roles()
        states = [roles.get(name, {}).get("state", "") for name in ("learner", "replay")]
        return states == ["learns", "serves"]

    def is_saved(self) -> bool:
        return layout.has_checkpoint(self.workdir)
